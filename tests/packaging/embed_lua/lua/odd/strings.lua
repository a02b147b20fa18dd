-- It's the stripper's test: "quotes", 'more' and [brackets] -- in a comment.

local a = '-- no comment' .. "it's --" -- isn't it?; a comment
local b = 'it\'s -- "' .. "\"--\\" --[ one line
	local c = a - -1 ;	--
if t[a[1]] ~= '' then  -- ünder; $ENV{HOME} @PATH@ ${a} \n \1
    return '$ENV{HOME} @PATH@ ${a} ü \n \\1;' --
end
