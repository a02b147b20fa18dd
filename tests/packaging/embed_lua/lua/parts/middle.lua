-- A part.
second; \n -- of several
