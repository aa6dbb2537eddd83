package pool

import (
	"context"
	"errors"
	"os"
	"path"
	"syscall"

	"rankfs/meta/state"
	"rankfs/shuffle/groupcommit"
	"rankfs/shuffle/mapfiles"
	"rankfs/shuffle/memory"
	"rankfs/shuffle/quota"
)

// A reserver is the cluster as package quota asks it.
type reserver struct{ *agreed }

// Self implements quota.Cluster.
func (r reserver) Self() string { return r.config.Cluster.Self() }

// Reserve implements quota.Cluster.
func (r reserver) Reserve(ctx context.Context, c *state.ReserveQuota) (unknown bool, err error) {
	_, err = r.agree(ctx, c)
	return errors.Is(groupcommit.Unknown(err), groupcommit.ErrUnknown), err
}

// promise has the files promise bytes of the quota of their job.
func (f *files) promise(a *agreed) {
	f.promised = quota.New(a.config.State, reserver{a}, f.root, func() ([]quota.File, error) { return f.weighAttempts(a) })
}

// weighAttempts is how many bytes each attempt has that is here, in all copies.
func (f *files) weighAttempts(a *agreed) (all []quota.File, err error) {
	for _, g := range a.config.State.Stages(f.number) {
		names, err := f.attemptNames(g.Number)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			name = path.Join(mapfiles.StageDir(g.Number), attemptsDir, name)
			if info, err := f.root.Lstat(name); err == nil {
				all = append(all, quota.File{Name: name, Bytes: allocated(info) * int64(max(1, a.wanted(g.Spec)))})
			}
		}
	}
	return all, nil
}

// allocated is the room of a file, with the memory that it has beyond its end.
func allocated(info os.FileInfo) int64 {
	has := info.Sys().(*syscall.Stat_t).Blocks * 512
	if has-info.Size() < memory.Page() {
		return info.Size()
	}
	return has
}

func ofQuota(j state.PoolJob) quota.Job { return quota.Job{Name: j.Name, Number: j.Number} }
