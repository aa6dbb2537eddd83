package catalog_test

import (
	"testing"

	"rankfs/cmd/internal/catalog"
	"rankfs/cmd/internal/catalog/catalogtest"
)

// Hosts are in the racks that a source knows, by whatever name, and not for longer than it is
// a dataset. The dataset that is first by its name is believed.
func TestRacksAreThoseOfSources(t *testing.T) {
	k := catalogtest.New(t, 1)
	c := k.Catalog("hdfs:///f", "ranks=1,batch=1", catalogtest.Index(t, map[string]string{"a.example.com": "/r1", "b.example.com": "/r2"}, 3, []string{"a"}))
	are := func(want map[string]string) {
		t.Helper()
		for host, rack := range want {
			if got := c.Rack(host); got != rack {
				t.Errorf("%s is in %q, not %q", host, got, rack)
			}
		}
	}
	are(map[string]string{"a": "/r1", "A.example.com.": "/r1", "b": "/r2", "c": "", "a.example.org": "", "": ""})
	k.Put(catalog.Registration{Name: "c", Source: "hdfs:///g", View: "ranks=1,batch=1"}, catalogtest.Index(t, map[string]string{"b.example.com": "/r3", "c": "/r3"}, 3, []string{"b"}))
	if !c.Update(t.Context()) {
		t.Fatal("the second dataset was not loaded")
	}
	are(map[string]string{"a": "/r1", "b": "/r3", "c": "/r3"})
	k.Put(catalog.Registration{Name: "d", Source: "file:///f", View: "ranks=1,batch=1"}, catalogtest.Index(t, nil, 3, []string{"a"}))
	if !c.Update(t.Context()) {
		t.Fatal("the dataset was not replaced")
	}
	are(map[string]string{"a": "", "b": "/r3"})
}
