package plans_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"rankfs/fetch/hdfs/namenode"
	"rankfs/test/cluster"
)

// What an administrator says of racks comes with every replica: by both calls, over RPC and
// over WebHDFS, and by how near the namenode takes them to be.
func TestRacksOfReplicas(t *testing.T) {
	c := cluster.Plans(t)
	dir, reader := c.Dir(t), c.Host("data4")
	const blocks = 3
	c.Host("data3").Put(t, dir+"/file", make([]byte, blocks*block), 2, block)
	if err := c.WaitReplicas(t.Context(), dir+"/file", 2); err != nil {
		t.Fatal(err)
	}
	rackOf := map[string]string{"data1": "/row/rack1", "data2": "/row/rack1", "data3": "/row/rack2", "data4": "/row/rack2"}
	unreachable := slices.Repeat([]string{"127.0.0.1:1"}, len(c.Addresses()))
	for way, addresses := range map[string][]string{"RPC": c.Addresses(), "WebHDFS": unreachable} {
		t.Run(way, func(t *testing.T) {
			config, err := namenode.FromConf(c.Conf(), c.Nameservice())
			if err != nil {
				t.Fatal(err)
			}
			config.Addresses, config.Dial, config.User = addresses, reader.DialContext, "root"
			config.Timeout = patience // for a namenode whose first call by a way it is
			names, err := namenode.New(config)
			if err != nil {
				t.Fatal(err)
			}
			defer names.Close()
			check := func(all []namenode.Block) {
				t.Helper()
				for _, b := range all {
					racks := make(map[string]string)
					for _, r := range b.Replicas {
						racks[r.Host] = r.Rack
					}
					want := maps.Clone(rackOf)
					maps.DeleteFunc(want, func(host, _ string) bool { _, has := racks[host]; return !has })
					if len(racks) != 2 || !maps.Equal(racks, want) {
						t.Errorf("replicas are in %v, and hosts in %v", racks, rackOf)
					}
				}
			}
			got, err := names.Locate(t.Context(), dir+"/file", 0, math.MaxInt64)
			if err != nil {
				t.Fatal(err)
			}
			check(got.Blocks)
			for _, b := range got.Blocks {
				if b.Replicas[0].Rack != "/row/rack2" {
					t.Errorf("of %+v the first is not in the rack of who asked", b.Replicas)
				}
			}
			listed := 0
			err = names.List(t.Context(), dir, true, func(st namenode.Status) error {
				listed += len(st.Blocks.Blocks)
				check(st.Blocks.Blocks)
				return nil
			})
			if err != nil || listed != blocks {
				t.Errorf("listed %d blocks: %v", listed, err)
			}
		})
	}
}
