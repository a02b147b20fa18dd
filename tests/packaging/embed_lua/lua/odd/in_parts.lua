first
    --include parts/middle.lua
last -- without a newline