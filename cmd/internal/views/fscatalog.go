package views

import "rankfs/fs"

// Names implements fs.Catalog.
func (vs *Views) Names() []string {
	var names []string
	for _, d := range vs.config.Catalog.List() {
		names = append(names, d.Name)
	}
	return names
}

// View implements fs.Catalog.
func (vs *Views) View(name string) (fs.View, error) {
	v, err := vs.Open(name)
	if err != nil {
		return fs.View{}, err
	}
	return fs.View{
		Dataset: v.asked.Dataset, Ranks: v.now().Cut().Ranks, Steps: v.now().Steps(), Settled: v.Settled,
		Batches: v, RecordTables: v, Describe: v.Describe, Tables: v, Attributed: v, Unlisted: v,
		Queue: v.Queue,
	}, nil
}
