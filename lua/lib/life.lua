-- Whether a request, of whose generations `first` is the first and `generation` the latest, is the one that has reached
-- the generation `asked`; 0: any is. Otherwise the server went back to an earlier life of the id, or the id was used again.
local function isOfLife(asked, generation, first)
  return asked == 0 or generation and tonumber(first) <= asked and asked <= tonumber(generation)
end
