package mountinfo

import (
	"slices"
	"testing"
)

const table = `22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 22 0:40 / /mnt/a rw - fuse.rankfs none rw,user_id=0
41 22 0:41 / /mnt/with\040blank\134 ro master:2 shared:7 - fuse.rankfs none ro
42 22 0:42 / /mnt/a rw - tmpfs tmpfs rw
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(table))
	want := []Mount{
		{ID: 22, Device: "8:1", Root: "/", Point: "/", Type: "ext4", Source: "/dev/sda1", Options: "rw"},
		{ID: 40, Device: "0:40", Root: "/", Point: "/mnt/a", Type: FSType, Source: "none", Options: "rw,user_id=0"},
		{ID: 41, Device: "0:41", Root: "/", Point: `/mnt/with blank\`, Type: FSType, Source: "none", Options: "ro"},
		{ID: 42, Device: "0:42", Root: "/", Point: "/mnt/a", Type: "tmpfs", Source: "tmpfs", Options: "rw"},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Fatalf("got %v, %v", got, err)
	}
	if m, ok := At(got, "/mnt/a"); !ok || m.ID != 42 {
		t.Errorf("At /mnt/a = %v, %v: want the topmost", m, ok)
	}
	if _, ok := At(got, "/mnt"); ok {
		t.Error("At /mnt found something")
	}
	for _, bad := range []string{"x", "1 2 3 - ext4", "x 1 8:1 / / rw - ext4 x rw"} {
		if got, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%q: got %v", bad, got)
		}
	}
}

func TestThisProcessHasATable(t *testing.T) {
	got, err := Read()
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := At(got, "/"); !ok {
		t.Errorf("no root in %v", got)
	}
}
