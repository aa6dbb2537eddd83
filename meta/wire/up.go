package wire

import (
	"context"
	"fmt"
	"maps"
	"sync"

	"rankfs/meta"
)

// errWentDown is why a node is not waited for any more.
var errWentDown = fmt.Errorf("node %w: it has gone down", meta.ErrUnavailable)

// An uptime lasts until the cluster says that the node is down.
type uptime struct {
	ctx context.Context
	end context.CancelFunc
}

// The uptimes are of the nodes that are up. The lock guards the table; no other is taken under it.
type uptimes struct {
	mu sync.Mutex
	of map[string]uptime
}

func newUptimes() *uptimes { return &uptimes{of: make(map[string]uptime)} }

// follow begins and ends uptimes: these nodes are up, and no others.
func (u *uptimes) follow(up []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	is := make(map[string]bool)
	for _, node := range up {
		is[node] = true
		if _, was := u.of[node]; !was {
			ctx, end := context.WithCancel(context.Background())
			u.of[node] = uptime{ctx, end}
		}
	}
	maps.DeleteFunc(u.of, func(node string, up uptime) bool {
		if !is[node] {
			up.end()
		}
		return !is[node]
	})
}

// whenDown has f called when a node that is up has gone down, unless stop is called before.
func (u *uptimes) whenDown(node string, f func()) (stop func() bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	up, is := u.of[node]
	if !is {
		return func() bool { return true }
	}
	return context.AfterFunc(up.ctx, f)
}
