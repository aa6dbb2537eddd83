package control

// routesOf has a line for each method of a Node: what the call is named, who may make it,
// what that does, as a refusal says it, and how it is done. One that changes something, or
// may wait, streams its answer: an election may come between, and a client that leaves
// ends what it asked for.
func routesOf(n Node) map[string]route {
	done := struct{}{}
	return map[string]route{
		"status":   {allUsers, "", func(*call) (any, error) { return n.Status(), nil }},
		"all":      {allUsers, "", func(c *call) (any, error) { return n.All(c.stream()), nil }},
		"load":     {allUsers, "", on(func(_ *call, r LoadRequest) (any, error) { return n.Load(r) })},
		"datasets": {allUsers, "", func(*call) (any, error) { return n.Datasets(), nil }},
		"dataset":  {allUsers, "", on(func(_ *call, r named) (any, error) { return n.Dataset(r.Name) })},
		"explain":  {allUsers, "", on(func(c *call, r ExplainRequest) (any, error) { return n.Explain(c.stream(), r) })},
		"create":   {admins, "create dataset", on(func(c *call, r CreateRequest) (any, error) { return n.Create(c.stream(), r, c.progress) })},
		"refresh":  {admins, "refresh dataset", on(func(c *call, r RefreshRequest) (any, error) { return n.Refresh(c.stream(), r, c.progress) })},
		"verify":   {admins, "verify dataset", on(func(c *call, r named) (any, error) { return n.Verify(c.stream(), r.Name, c.progress) })}, // it reads all of the source
		"remove":   {admins, "remove dataset", on(func(c *call, r named) (any, error) { c.stream(); return done, n.Remove(r.Name) })},

		"cluster":      {allUsers, "", func(*call) (any, error) { return n.Cluster(), nil }},
		"token":        {admins, "create token", on(func(c *call, r TokenRequest) (any, error) { return n.CreateToken(c.stream(), r) })},
		"tokens":       {admins, "list tokens", func(*call) (any, error) { return n.Tokens(), nil }},
		"drop-token":   {admins, "remove token", on(func(c *call, r named) (any, error) { return done, n.DropToken(c.stream(), r.Name) })},
		"drain":        {admins, "drain node", on(func(c *call, r DrainRequest) (any, error) { return done, n.DrainNode(c.stream(), r) })},
		"remove-node":  {admins, "remove node", on(func(c *call, r named) (any, error) { return done, n.RemoveNode(c.stream(), r.Name) })},
		"promote-node": {admins, "promote node", on(func(c *call, r named) (any, error) { return n.PromoteNode(c.stream(), r.Name) })},
		"plan":         {lookers, "settle plan of", on(func(c *call, r PlanRequest) (any, error) { return n.Plan(c.stream(), r) })},

		"queues":       {allUsers, "", func(*call) (any, error) { return n.Queues(), nil }},
		"queue":        {allUsers, "", on(func(_ *call, r named) (any, error) { return n.Queue(r.Name) })},
		"reset-queue":  {admins, "reset queue of", on(func(c *call, r ResetRequest) (any, error) { return n.ResetQueue(c.stream(), r) })},
		"drop-queue":   {admins, "remove queue of", on(func(c *call, r named) (any, error) { return done, n.DropQueue(c.stream(), r.Name) })},
		"queue-policy": {lookers, "set queue policy", on(func(c *call, r PolicyRequest) (any, error) { return n.QueuePolicy(c.stream(), r) })},

		"policy": {lookers, "set cache policy", on(func(_ *call, r PolicyRequest) (any, error) { return n.Policy(r) })},
		"pin":    {admins, "pin", on(func(c *call, r CachePinRequest) (any, error) { return n.PinCache(c.stream(), r) })},
		"cached": {allUsers, "", func(c *call) (any, error) { c.stream(); return n.Cached(), nil }},
		"evict":  {admins, "evict", on(func(c *call, r named) (any, error) { return n.Evict(c.stream(), r.Name) })},
		"warm":   {lookers, "warm up", on(func(c *call, r WarmRequest) (any, error) { return n.Warm(c.stream(), r, c.progress) })},

		"pool-jobs":   {allUsers, "", func(c *call) (any, error) { return n.PoolJobs(c.stream()) }},
		"pool-job":    {owners, "show job", on(func(c *call, r named) (any, error) { return n.PoolJob(c.stream(), c.user(), r.Name) })},
		"pool-stage":  {owners, "show stage", on(func(c *call, r named) (any, error) { return n.PoolStage(c.stream(), c.user(), r.Name) })},
		"make-pool":   {owners, "make", on(func(c *call, r PoolRequest) (any, error) { return done, n.MakePool(c.stream(), c.user(), r) })},
		"pool-quota":  {owners, "set quota of", on(func(c *call, r PoolRequest) (any, error) { return done, n.SetQuota(c.stream(), c.user(), r) })},
		"seal-stage":  {owners, "seal", on(func(c *call, r named) (any, error) { return n.SealStage(c.stream(), c.user(), r.Name) })},
		"reset-stage": {owners, "reset", on(func(c *call, r named) (any, error) { return n.ResetStage(c.stream(), c.user(), r.Name) })},
		"drop-pool":   {owners, "remove", on(func(c *call, r named) (any, error) { return done, n.DropPool(c.stream(), c.user(), r.Name) })},

		"traces":       {allUsers, "", func(*call) (any, error) { return n.Traces(), nil }},
		"trace":        {allUsers, "", on(func(_ *call, r named) (any, error) { return n.Trace(r.Name) })},
		"learn-trace":  {admins, "learn trace of", on(func(c *call, r LearnRequest) (any, error) { c.stream(); return n.LearnTrace(r) })},
		"forget-trace": {admins, "forget trace of", on(func(c *call, r named) (any, error) { c.stream(); return done, n.ForgetTrace(r.Name) })},
	}
}

// on reads the request of a route before it is done.
func on[R any](do func(*call, R) (any, error)) func(*call) (any, error) {
	return func(c *call) (any, error) {
		var r R
		if err := c.request(&r); err != nil {
			return nil, err
		}
		return do(c, r)
	}
}
