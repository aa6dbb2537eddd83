package mounts

// Parts of the package that its tests look at.
var (
	ResolveIn = resolve
	Around    = around
	Write     = write
	ID        = id
	Detach    = detach
)
