package cache

// A ramBudget is the book of memory: how many bytes are taken of its budget, and by what. It only
// counts; ram's lock guards it.
//
//   - used are the bytes of each file that there is (held, spare, dying or looked at), of each slot
//     that is taken, and of others: what is taken once is freed once.
//   - What is taken fits. used exceeds the budget only when that became less, until slabs have made
//     way; then nothing fits.
//   - Of the files that are held, closed have no descriptor; of all others there is one each.
//   - When nothing is held and memory is closed, all is zero.
type ramBudget struct {
	used   int64
	others int64 // part of used, by other things than slabs
	slots  int   // that are taken
	held   int   // files given out and not retired
	closed int   // of those, files without a descriptor
}

// fits reports whether so much may be taken of a budget.
func (b *ramBudget) fits(need, budget int64) bool { return b.used+need <= budget }

func (b *ramBudget) take(bytes int64) { b.used += bytes }

func (b *ramBudget) free(bytes int64) { b.used -= bytes }

// takeOthers says that bytes that were taken are of other things than slabs.
func (b *ramBudget) takeOthers(bytes int64) { b.others += bytes }

func (b *ramBudget) freeOthers(bytes int64) {
	b.others -= bytes
	b.free(bytes)
}

// takeSlot says that bytes that were taken are of a slot.
func (b *ramBudget) takeSlot() { b.slots++ }

func (b *ramBudget) freeSlot(bytes int64) {
	b.slots--
	b.free(bytes)
}

// hold says that a file is given out, and letGo that it is taken back, with its descriptor or without.
func (b *ramBudget) hold() { b.held++ }

func (b *ramBudget) letGo(open bool) {
	if b.held--; !open {
		b.closed--
	}
}

// shut says that a file that is held has lost its descriptor, and reopened that it has one again.
func (b *ramBudget) shut() { b.closed++ }

func (b *ramBudget) reopened() { b.closed-- }

// open are the files with a descriptor, of those that are held.
func (b *ramBudget) open() int { return b.held - b.closed }

// slabs are those that have memory.
func (b *ramBudget) slabs() int { return b.held + b.slots }
