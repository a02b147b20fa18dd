first
    --include parts/middle.lua
third