package pool

import (
	"io"

	"rankfs/meta"
)

// errNoMemory is for a copy that memory has no room for. The next node is asked for it.
var errNoMemory = meta.Worded(meta.ErrNoSpace, "memory of the shuffle pool has no room for it: give --pool-ram a larger SIZE, or remove jobs")

// An arrival is a copy that comes into memory. What has not come yet of all of them counts as
// if it were there, so that none begins that would find no room in the end.
type arrival struct {
	from   io.Reader
	budget *budget
	left   int64
	read   int // at last, which is not written yet
}

// admit is the arrival of so many bytes, which from has, if memory has room for them. Its end is
// called when what was read is written, or nothing more of it is wanted.
func (b *budget) admit(bytes int64, from io.Reader) (*arrival, error) {
	free := b.bytes - b.used()
	for {
		all := b.arriving.Load()
		if bytes > free-all {
			return nil, errNoMemory
		}
		if b.arriving.CompareAndSwap(all, all+bytes) {
			return &arrival{from: from, budget: b, left: bytes}, nil
		}
	}
}

// free is the number of bytes of copies that memory has room for.
func (b *budget) free() int64 { return max(0, b.bytes-b.used()-b.arriving.Load()) }

// Read implements io.Reader.
func (a *arrival) Read(p []byte) (n int, err error) {
	a.came(int64(a.read))
	a.read, err = a.from.Read(p)
	return a.read, err
}

// came says that so much more is written, where the kernel counts it, or does not come.
func (a *arrival) came(bytes int64) {
	bytes = min(bytes, a.left)
	a.left -= bytes
	a.budget.arriving.Add(-bytes)
}

func (a *arrival) end() { a.came(a.left) }
