package disk

import (
	"os"

	"rankfs/meta/slowdisk"
)

// What is to last is synced after each so many bytes, so that no more is to be written by one call.
const syncBytes = 64 << 20

// An Output is a file that work on a disk writes.
type Output struct {
	file    slowdisk.File
	lasting bool
	n       int64 // bytes since it was synced
}

// NewOutput is a file that work writes; if lasting it is synced amid that.
func NewOutput(w *slowdisk.Work, file *os.File, lasting bool) *Output {
	return &Output{file: w.File(file), lasting: lasting}
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (n int, err error) {
	n, err = o.file.Write(b)
	if o.n += int64(n); err == nil && o.lasting && o.n >= syncBytes {
		err = o.Sync()
	}
	return n, err
}

// Sync has all that was written last.
func (o *Output) Sync() error {
	o.n = 0
	return o.file.Sync()
}
