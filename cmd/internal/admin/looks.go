package admin

import "sync"

// maxLooks is how many nodes, or datasets, are looked at at a time.
const maxLooks = 32

// atOnce looks n times, at maxLooks things at a time: some wait for other nodes.
func atOnce(n int, look func(i int)) {
	slots := make(chan struct{}, maxLooks)
	var looks sync.WaitGroup
	for i := range n {
		slots <- struct{}{}
		looks.Go(func() {
			defer func() { <-slots }()
			look(i)
		})
	}
	looks.Wait()
}
