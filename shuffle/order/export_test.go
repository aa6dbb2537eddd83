package order

// Blocks returns where the first block of a windowed order begins in the
// source, and how many records a block has.
func (o Order) Blocks() (first, block uint64) {
	return o.windowed.rotation, o.windowed.block
}
