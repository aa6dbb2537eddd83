package disks

import (
	"rankfs/meta"
	"rankfs/meta/diskdir"
	"rankfs/meta/slowdisk"
)

// Try says why New would fail by what is on the disks now, and makes nothing there.
func (c Config) Try() error {
	c.Log = nil // New says it of one that is suspended
	c, err := c.withDefaults()
	if err != nil {
		return err
	}
	first := make(map[diskdir.Spot]string)
	return c.enter(func(dir Dir) error {
		at, err := watch(newHealth(dir.Path, c), slowdisk.Once(func() (diskdir.Spot, error) { return diskdir.Try(dir.Path) }), nil)
		if err != nil {
			return err
		}
		if other := first[at]; other != "" {
			return meta.Worded(meta.ErrInvalid, "it is %s by another name: give it once, with one budget", other)
		}
		first[at] = dir.Path
		return nil
	})
}
