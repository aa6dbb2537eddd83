package blobs

import (
	"maps"
	"slices"

	"rankfs/cache/disks"
)

// folders are the folders that can be read now.
func (s *Store) folders() []*disks.Folder {
	all := s.config.Room.Folders(s.config.Folder)
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.mu.listed, func(f disks.Folder, _ bool) bool { return !among(all, &f) })
	return all
}

func among(all []*disks.Folder, folder *disks.Folder) bool {
	return slices.ContainsFunc(all, func(f *disks.Folder) bool { return *f == *folder })
}

// erase removes the files of a key in a folder.
func (s *Store) erase(folder *disks.Folder, key string) {
	if err := folder.Remove(key+"."+s.config.Suffix, key+"."+part, key+"."+summed); err != nil {
		s.log.Warn("blob not removed", "blob", folder.Path(key), "cause", err)
	}
}
