package cache

import "context"

// A maker makes slabs: from their bytes in a tier, or new ones, for which it
// finds room and has their series write the bytes. Workers have one, and so have inputs. It
// holds the cache's lock while it publishes what it did, never while it makes it.
type maker struct {
	*tiers
	mu        *guarded
	admission *admission
	store     *store
	ctx       context.Context
	write     func(ctx context.Context, e *entry, mem []byte) error // by its series
}

func (m *maker) waitedFor(e *entry) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return e.awaited()
}

// unpacks reports whether a batch is there in packed form.
func (m *maker) unpacks(k Key) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.mu.slabs.isPacked(k)
}
