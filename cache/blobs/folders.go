package blobs

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"

	"rankfs/cache/disks"
)

// Room is where blobs are, and its budget. Its methods may be called concurrently.
type Room interface {
	// Folders are the folders of a name in the directories that can be read now.
	Folders(name string) []*disks.Folder
	// Reserve counts bytes as used, until the reservation is released, in the directory of
	// that path, or for files to come in any that has room for them if it is
	// empty. The error wraps meta.ErrNoSpace if there is no room, now or ever.
	Reserve(ctx context.Context, bytes int64, in string) (*disks.Reservation, error)
}

// Config says where blobs are, and what their files are called.
type Config struct {
	Room   Room
	Folder string // in each directory; no other store has it
	Suffix string // of whole blobs
	Log    *slog.Logger
}

const (
	part   = "part"
	summed = "sums"
)

// Folders are where the blobs of a store are. The lock guards which of them were listed: what is in
// these is known. No other lock is taken while it is held, and there is no I/O.
type folders struct {
	Config
	mu struct {
		sync.Mutex
		listed map[disks.Folder]bool
	}
}

// all are the folders that can be read now.
func (f *folders) all() []*disks.Folder {
	all := f.Room.Folders(f.Folder)
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.mu.listed, func(known disks.Folder, _ bool) bool { return !among(all, &known) })
	return all
}

// list notes that a folder is listed, and reports whether it was.
func (f *folders) list(folder *disks.Folder) (known bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	known = f.mu.listed[*folder]
	f.mu.listed[*folder] = true
	return known
}

// unlist has a folder looked at again by the next Retain.
func (f *folders) unlist(folder *disks.Folder) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.mu.listed, *folder)
}

func among(all []*disks.Folder, folder *disks.Folder) bool {
	return slices.ContainsFunc(all, func(f *disks.Folder) bool { return *f == *folder })
}

// erase removes the files of a key in a folder.
func (f *folders) erase(folder *disks.Folder, key string) {
	if err := folder.Remove(key+"."+f.Suffix, key+"."+part, key+"."+summed); err != nil {
		f.Log.Warn("blob not removed", "blob", folder.Path(key), "cause", err)
	}
}
