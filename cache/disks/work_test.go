package disks

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"rankfs/meta/slowdisk"
)

// leftBehind does work for which no caller waits any more.
func leftBehind(t *testing.T, work func(*slowdisk.Work) error) error {
	t.Helper()
	var disk slowdisk.Disk
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	left, ended := make(chan struct{}), make(chan error, 1)
	_, err := slowdisk.Run(ctx, &disk, time.Minute, slowdisk.Plain(func(w *slowdisk.Work) error {
		<-left
		ended <- work(w)
		return nil
	}), nil)
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	close(left)
	return <-ended
}

// Of memory that may be another's by then no more is written.
func TestNothingIsWrittenOfWhoLeft(t *testing.T) {
	file, err := os.Create(t.TempDir() + "/file")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f := &File{file: file}
	if err := leftBehind(t, func(w *slowdisk.Work) error { return f.write(w, make([]byte, 9<<20), 0) }); err == nil {
		t.Error("it is written")
	}
	if size, err := f.Size(); err != nil || size != 0 {
		t.Errorf("%d bytes are written: %v", size, err)
	}
}
