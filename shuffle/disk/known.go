package disk

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rankfs/meta"
	"rankfs/meta/durable"
)

// mark begins the name of an empty file in the place that a node has below a directory; no other
// place has one of that name. The node notes it in its state, so that no later daemon takes another
// place for this one, as at the mount point of a disk that is not mounted: all maps would be missing.
const mark = ".id-"

// Known reports whether a directory is the one in which a node has its place by its note, and says why
// it is not. Without a note it is not known, which is no error. It makes nothing.
func Known(at, note string) (known bool, err error) {
	noted, err := os.ReadFile(note)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	place := strings.TrimSpace(string(noted))
	switch {
	case err == nil && !strings.HasPrefix(filepath.Base(place), mark):
		err = fs.ErrNotExist // a note of no place: it is damaged
	case err == nil:
		_, err = os.Lstat(filepath.Join(at, place))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return false, meta.Worded(meta.ErrNotExist, "it is not the one that has the maps of this node: mount its disk first, or name that one with --pool-nvme; to give those maps up and begin anew, remove the note of where they are, with: rm %s", meta.ShellWord(note))
	}
	return err == nil, err
}

// remember notes a place, unless one is noted.
func remember(place *os.Root, note string) error {
	if _, err := os.Lstat(note); err == nil {
		return nil
	}
	marks, err := fs.Glob(place.FS(), mark+"*")
	if err == nil && len(marks) == 0 {
		marks = []string{newMark()}
		err = makeEmpty(place, marks[0])
	}
	if err == nil { // before the note: a place whose mark a power failure took would be refused
		err = errors.Join(durable.SyncIn(place, "."), durable.SyncDir(filepath.Dir(place.Name())))
	}
	if err != nil {
		return err
	}
	return durable.WriteFile(note, []byte(filepath.Join(filepath.Base(place.Name()), marks[0])+"\n"), 0600)
}

func newMark() string {
	var b [8]byte
	rand.Read(b[:])
	return mark + hex.EncodeToString(b[:])
}

func makeEmpty(place *os.Root, name string) error {
	f, err := place.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0400)
	if err != nil {
		return err
	}
	return f.Close()
}
