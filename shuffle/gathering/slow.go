package gathering

import (
	"sync"
	"time"
)

// slowTime is how long a node that was slow is asked after others.
const slowTime = 10 * time.Second

// slowNodes are those that said nothing for a while, although another node could be asked, and
// until when they are asked after others. The lock guards them.
type slowNodes struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (n *slowNodes) add(node string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.until == nil {
		n.until = make(map[string]time.Time)
	}
	n.until[node] = time.Now().Add(slowTime)
}

// are reports whether a node is one of them.
func (n *slowNodes) are(node string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return time.Now().Before(n.until[node])
}
