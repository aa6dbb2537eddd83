package slowdisk

import "os"

// A File is a file that a work reads and writes: each method is a system call that is made by Do.
type File struct {
	work *Work
	file *os.File
}

// File is a file as the work may use it.
func (w *Work) File(file *os.File) File { return File{w, file} }

// Read implements io.Reader.
func (f File) Read(b []byte) (n int, err error) {
	err = f.work.Do(func() (err error) {
		n, err = f.file.Read(b)
		return err
	})
	return n, err
}

// ReadAt implements io.ReaderAt.
func (f File) ReadAt(b []byte, off int64) (n int, err error) {
	err = f.work.Do(func() (err error) {
		n, err = f.file.ReadAt(b, off)
		return err
	})
	return n, err
}

// WriteAt implements io.WriterAt. Where b is memory that others own, a call that the disk does not
// answer may read it after they were told: nothing must come of what it writes then.
func (f File) WriteAt(b []byte, off int64) (n int, err error) {
	err = f.work.Do(func() (err error) {
		n, err = f.file.WriteAt(b, off)
		return err
	})
	return n, err
}

// Sync has the disk take all that was written.
func (f File) Sync() error { return f.work.Do(f.file.Sync) }
