package fs

import "sync"

// Notices are goroutines that tell the kernel what it has not asked for: from when the tree is
// mounted, and what they need is set, until it is not any more. The lock guards whether it is.
type notices struct {
	mu      sync.Mutex
	mounted bool

	work sync.WaitGroup
}

func (n *notices) begin() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mounted = true
}

// tell calls f from a goroutine of its own, if there is a kernel to tell.
func (n *notices) tell(f func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.mounted {
		n.work.Go(f)
	}
}

// end waits until all are told; from then on no notice is sent.
func (n *notices) end() {
	n.mu.Lock()
	n.mounted = false
	n.mu.Unlock()
	n.work.Wait()
}
