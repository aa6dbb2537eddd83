package pooltree

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"rankfs/fs/errnos"
	"rankfs/meta"
)

// A lanesPool has one job with one stage, in which a commit waits for others.
type (
	lanesPool struct {
		JobNames
		job Job
	}
	lanesStages struct {
		StageNames
		together *sync.WaitGroup
	}
	lanesAttempts struct {
		AttemptEnds
		together *sync.WaitGroup
	}
	lanesMaps struct{ MapNumbers }
)

func (p lanesPool) Job(context.Context, string) (Job, error) { return p.job, nil }

func (g lanesStages) Stage(context.Context, string) (Stage, error) {
	return Stage{
		Named: kept{8, false}, Generation: func() uint64 { return 0 }, Refused: func(string, error) {},
		Attempts: Attempts{Dir: attemptsDir, AttemptEnds: lanesAttempts{together: g.together}}, Maps: Maps{MapNumbers: lanesMaps{}},
	}, nil
}

func (lanesMaps) Find(context.Context, uint64) (Map, error) { return Map{}, meta.ErrNotExist }

var errAlone = errors.New("no other commit came")

func (a lanesAttempts) Commit(ctx context.Context, _ meta.Attempt, _ bool) error {
	a.together.Done()
	all := make(chan struct{})
	go func() {
		a.together.Wait()
		close(all)
	}()
	select {
	case <-all:
		return nil
	case <-time.After(time.Minute):
		return errAlone
	}
}

// Maps in several lanes of a stage are committed at a time: the kernel waits for none of them
// before it asks for the next.
func TestLanesCommitAtATime(t *testing.T) {
	dir, mnt := t.TempDir(), t.TempDir()
	files, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	if err := files.Mkdir("attempts", 0o700); err != nil {
		t.Fatal(err)
	}
	var together sync.WaitGroup
	log := slog.New(slog.DiscardHandler)
	tree := New(Config{
		Pool:   Pool{JobNames: lanesPool{job: keptJob(files, false, lanesStages{together: &together})}},
		Errnos: errnos.New(log), Log: log,
	})
	if err := tree.Mount(mnt); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := tree.Unmount(mnt); err != nil {
			t.Error(err)
		}
	}()
	var writers sync.WaitGroup
	numbers := []uint64{0, 1, 63}
	together.Add(len(numbers))
	for _, number := range numbers {
		a := meta.Attempt{Map: number}
		if err := files.WriteFile("attempts/"+a.String(), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		lane := filepath.Join(mnt, "job/stage", lanePrefix+meta.MapName(number)[len("map-0000"):])
		writers.Go(func() {
			if out, err := exec.Command("mv", "-T", filepath.Join(lane, a.String()), filepath.Join(lane, meta.MapName(number))).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	writers.Wait()
}
