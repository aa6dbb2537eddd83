package blobs

import "context"

// A use is a time in which a blob is held open, by one or several users. One goroutine
// owns the blob's files meanwhile: it opens or makes them, and closes them when
// the last user has left. What has no goroutine, as the blob is being adopted or
// removed, has no users either.
type use struct {
	users   int           // guarded by the store's mu; at zero the use is ending
	lasting bool          // the blob is made even if no user waits for it; guarded too
	begun   chan struct{} // closed when the blob is known not to be there, and is being made
	ready   chan struct{} // closed when it is there, or err says why not
	ended   chan struct{}
	err     error
	leave   context.CancelFunc
}
