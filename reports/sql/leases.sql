-- Leases: who held which GPUs, from when to when, as sacct shows jobs.
--
-- A row per lease that held GPUs in the period; elapsed, hours and charges are of the period alone. state is in Slurm's
-- words (sacct -o State), reason in Jobtree's own.
-- @owner run_owner, owner
-- @check milli_gpu_seconds = charges by owner, run_owner, flavor
-- @check gpu_seconds = held by owner, run_owner, flavor
WITH inside AS (
    SELECT
        namespace,
        lease,
        sum(seconds)::BIGINT AS seconds,
        sum(gpus * seconds)::BIGINT AS gpu_seconds,
        coalesce(sum(milli_gpus * seconds) FILTER (class <> 'unfunded' AND budget IS NOT NULL), 0)::BIGINT
            AS milli_gpu_seconds,
        arg_max(class, began) AS class
    FROM segments
    GROUP BY namespace, lease
)
SELECT
    l.namespace || '/' || l.run AS run,
    l.name AS lease,
    l.run_owner,
    l.owner,
    l.budget || '/' || l.envelope AS payer,
    i.class,
    l.flavor,
    l."group",
    l.role,
    l.node,
    len(l.ordinals) AS gpus,
    iso(l.start) AS started,
    CASE WHEN l.closed AND l.ended <= getvariable('until') THEN iso(l.ended) END AS ended,
    CASE WHEN i.seconds >= 86400 THEN (i.seconds // 86400) || '-' ELSE '' END
        || strftime(make_timestamp(i.seconds % 86400 * 1000000), '%H:%M:%S') AS elapsed,
    CASE
        WHEN NOT l.closed OR l.ended > getvariable('until') THEN 'RUNNING'
        WHEN l.closure_reason = 'Completed' THEN 'COMPLETED'
        WHEN l.closure_reason IN ('Cancelled', 'RunDeleted') THEN 'CANCELLED'
        WHEN l.closure_reason = 'TimeLimit' THEN 'TIMEOUT'
        WHEN l.closure_reason = 'NodeFailure' THEN 'NODE_FAIL'
        WHEN l.closure_reason = 'Suspended' THEN 'SUSPENDED'
        WHEN l.closure_reason IN ('Shrink', 'DropSpare', 'Swap') THEN 'RESIZING'
        WHEN l.closure_reason IN ('ReclaimUnfunded', 'ReclaimedBySpare', 'SwapDeclined', 'Lottery') THEN 'PREEMPTED'
        ELSE 'FAILED'
    END AS state,
    CASE WHEN l.closed AND l.ended <= getvariable('until') THEN l.closure_reason ELSE l.reason END AS reason,
    i.gpu_seconds,
    i.milli_gpu_seconds
FROM inside AS i
JOIN leases AS l ON l.namespace = i.namespace AND l.name = i.lease
ORDER BY l.start, counted(run), l."group", l.role, counted(l.node), l.ordinals, run, lease;

-- @lead
SELECT CASE
    WHEN count(*) = 0 THEN 'No lease held a GPU in this period.'
    ELSE counted_as(count(*), 'lease') || ' of ' || counted_as(count(DISTINCT run), 'run') || ' held '
        || number(sum(gpu_seconds) / 3600) || ' GPU-hours; ' || number(count(*) FILTER (state = 'RUNNING'))
        || ' still ' || CASE WHEN count(*) FILTER (state = 'RUNNING') = 1 THEN 'runs.' ELSE 'run.' END
END
FROM report;

-- @figures
SELECT 'Held' AS label, number(coalesce(sum(gpu_seconds), 0) / 3600) || ' GPU-hours' AS value,
    change(sum(gpu_seconds), (SELECT sum(gpu_seconds) FROM before)) AS note
FROM report
UNION ALL
SELECT 'Charged', number(coalesce(sum(milli_gpu_seconds), 0) / 3600000) || ' GPU-hours',
    change(sum(milli_gpu_seconds), (SELECT sum(milli_gpu_seconds) FROM before))
FROM report
UNION ALL
SELECT 'Lost to failed nodes', counted_as(count(*), 'lease'), number(sum(gpu_seconds) / 3600) || ' GPU-hours until then'
FROM report WHERE state = 'NODE_FAIL' HAVING count(*) > 0;

-- @chart bars: GPU-hours held, by the owner of the run
SELECT moment(step) AS x, moment(step_end) AS x2, sum(gpus * seconds) / 3600 AS y, run_owner AS series
FROM by_step('ledger')
WHERE asked(run_owner) AND seconds > 0
GROUP BY step, step_end, run_owner
ORDER BY sum(sum(gpus * seconds)) OVER (PARTITION BY run_owner) DESC, run_owner, x;

-- @table tree sum=GPU-hours
SELECT
    run_owner AS "Owner",
    run AS "Run",
    coalesce(payer, 'nobody') AS "Paid from",
    node AS "Node",
    gpus AS "GPUs",
    started::TIMESTAMP AS "Started",
    ended::TIMESTAMP AS "Ended",
    gpu_seconds / 3600 AS "GPU-hours",
    reason AS "Reason"
FROM report
ORDER BY gpu_seconds DESC, run, lease
