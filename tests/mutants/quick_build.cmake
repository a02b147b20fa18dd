# What a mutant changes is built in few, large pieces: one header of the machines is in most of them anyway.
cmake_language(DEFER CALL set_target_properties redislock redislock_simulation redislock_test_support
    PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 16)
