return [[
-- a string
]]
