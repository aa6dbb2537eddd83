package mounts

// Parts of the package that its tests look at.
var (
	ParseTable = parseTable
	ResolveIn  = resolve
	Around     = around
	Write      = write
	ID         = id
	Detach     = detach
)
