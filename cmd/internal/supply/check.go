package supply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rankfs/meta"
)

// A Finding is the result of Check for a pair.
type Finding struct {
	Rank      int    `json:"rank"`
	Pipe      string `json:"pipe"`
	PipeState string `json:"pipe_state"`
	Map       string `json:"map"`
	MapState  string `json:"map_state"`
}

func (f Finding) String() string {
	return fmt.Sprintf("rank %d  pipe %s (%s)  map %s (%s)", f.Rank, f.Pipe, f.PipeState, f.Map, f.MapState)
}

// Check looks at each pair that Run would serve, and makes nothing. Its error
// says that Run would fail; the findings say more.
func Check(ctx context.Context, c Config) (findings []Finding, err error) {
	c = c.withDefaults()
	places, err := c.places(ctx)
	if err != nil {
		return nil, err
	}
	bad := 0
	seen := map[spot]bool{}
	for _, at := range places {
		mapped, err := checkMapped(at.mapped, seen)
		pipe, pipeErr := checkPipe(at.pipe, seen)
		if err = errors.Join(err, pipeErr); err != nil {
			bad++
		}
		findings = append(findings, Finding{int(at.rank), at.pipe, pipe, at.mapped, mapped})
	}
	if bad > 0 {
		return findings, fmt.Errorf("%d of %d pairs cannot be used: change their lines in %s and %s", bad, len(places), c.Pipes, c.Maps)
	}
	return findings, nil
}

// A spot is a file that is there, or the name in a directory of one that is to be made.
type spot struct {
	id   fileID // of the file, or of the directory
	name string // empty: of the file
}

var errTwice = errors.New("is listed twice")

func checkPipe(path string, seen map[spot]bool) (string, error) {
	id, err := findPipe(path)
	return judge(path, id, err, "ready", seen)
}

func checkMapped(path string, seen map[spot]bool) (string, error) {
	id, err := findMapped(path)
	if err != nil {
		return judge(path, id, err, "", seen)
	}
	fd, err := openFile(path, unix.O_RDWR|unix.O_NONBLOCK)
	if err != nil {
		return meta.Plain(err), err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return meta.Plain(err), err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return "another supply uses it", err
	}
	good := fmt.Sprintf("%d bytes", st.Size)
	if !inMemory(path) {
		good += ", on a disk: use a tmpfs"
	}
	return judge(path, id, nil, good, seen)
}

// judge turns the finding about a path into words.
func judge(path string, id fileID, err error, good string, seen map[spot]bool) (string, error) {
	at := spot{id: id}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		dir := filepath.Dir(path)
		var st unix.Stat_t
		if err := cmp.Or(unix.Access(dir, unix.W_OK|unix.X_OK), unix.Stat(dir, &st)); err != nil {
			return fmt.Sprintf("cannot be made in %s: %s", dir, meta.WhyNot(err)), err
		}
		at, good = spot{idOf(&st), filepath.Base(path)}, "to be made"
	case err != nil:
		return meta.Plain(err), err
	}
	if seen[at] {
		return errTwice.Error(), errTwice
	}
	seen[at] = true
	return good, nil
}
