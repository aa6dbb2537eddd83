package hadoop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rankfs/test/eventually"
)

// StartTime bounds the start of an HDFS, which takes 15 s where nothing else runs.
const StartTime = 10 * time.Minute

// Turn waits until no other process of this machine starts an HDFS: virtual machines that
// start side by side take each other's time, and none of them answers.
func Turn(ctx context.Context) (done func() error, err error) {
	f, err := os.OpenFile(filepath.Join(os.TempDir(), "rankfs-hdfs-starts"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	err = eventually.Until(ctx, func() error {
		return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	})
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("wait for the start of another HDFS: %w", err)
	}
	return f.Close, nil
}

// A Watch says of the time since it began for how much of it the machine was short of something.
type Watch struct {
	began   time.Time
	stalled map[string]time.Duration
}

// NewWatch begins one.
func NewWatch() Watch {
	w := Watch{time.Now(), make(map[string]time.Duration)}
	for _, of := range resources {
		w.stalled[of.file] = stalled(of.file)
	}
	return w
}

var resources = []struct{ file, name string }{{"cpu", "processors"}, {"io", "disk"}, {"memory", "memory"}}

// stalled is for how long some process had to wait since the machine began; none, where
// the kernel does not say.
func stalled(file string) time.Duration {
	text, err := os.ReadFile("/proc/pressure/" + file)
	if err != nil {
		return 0
	}
	line, _, _ := strings.Cut(string(text), "\n")
	_, total, _ := strings.Cut(line, "total=")
	us, err := strconv.ParseInt(total, 10, 64)
	if err != nil {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

func (w Watch) String() string {
	took := time.Since(w.began)
	var short []string
	for _, of := range resources {
		share := 100 * (stalled(of.file) - w.stalled[of.file]) / max(took, 1)
		short = append(short, fmt.Sprintf("of %s for %d %%", of.name, share))
	}
	return fmt.Sprintf("in these %.0fs this machine was short %s", took.Seconds(), strings.Join(short, ", "))
}
