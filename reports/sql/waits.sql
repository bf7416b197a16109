-- Waits: how long runs waited before they started, and what waits now.
--
-- A run's wait is from its creation to its first Active lease; counted are runs that started in the period. What waits
-- are those that hold nothing at its end. Runs that no cycle has seen have no known creation, and no known wait.
-- @reads everything
-- @check started = starts by owner:run_owner, flavor
WITH firsts AS (
    SELECT run_uid, min(start) AS started, arg_min(run_owner, (start, namespace, name)) AS run_owner,
        arg_min(flavor, (start, namespace, name)) AS flavor, sum(len(ordinals)) FILTER (start = first_start) AS gpus
    FROM (SELECT *, min(start) OVER (PARTITION BY run_uid) AS first_start FROM leases WHERE role = 'Active')
    GROUP BY run_uid
),
starts AS (
    SELECT f.run_owner AS owner, f.flavor, f.gpus, f.started - r.created AS wait
    FROM firsts AS f
    LEFT JOIN (SELECT uid, min(created) AS created FROM runs GROUP BY uid) AS r ON r.uid = f.run_uid
    WHERE f.started >= getvariable('since') AND f.started < getvariable('stop')
),
waiting AS (
    SELECT owner, flavor, total AS gpus, getvariable('until') - created AS wait
    FROM runs
    WHERE state = 'Active' AND outcome IS NULL AND flavor IS NOT NULL
    AND created < getvariable('until') AND last_seen >= getvariable('until')
    AND uid NOT IN (SELECT run_uid FROM ledger WHERE is_open)
),
groups AS (
    SELECT owner, flavor FROM starts UNION SELECT owner, flavor FROM waiting
),
past AS (
    SELECT owner, flavor, count(*) AS started, sum(gpus) AS started_gpus,
        quantile_disc(wait, 0.5) AS p50, quantile_disc(wait, 0.9) AS p90, max(wait) AS longest, sum(wait) AS total
    FROM starts GROUP BY owner, flavor
),
present AS (
    SELECT owner, flavor, count(*) AS waiting, sum(gpus) AS waiting_gpus, max(wait) AS oldest
    FROM waiting GROUP BY owner, flavor
)
SELECT
    g.owner,
    g.flavor,
    coalesce(p.started, 0) AS started,
    coalesce(p.started_gpus, 0)::BIGINT AS started_gpus,
    p.p50 AS wait_seconds_p50,
    p.p90 AS wait_seconds_p90,
    p.longest AS wait_seconds_longest,
    coalesce(p.total, 0)::BIGINT / 3600 AS wait_hours,
    coalesce(n.waiting, 0) AS waiting,
    coalesce(n.waiting_gpus, 0)::BIGINT AS waiting_gpus,
    n.oldest AS waiting_seconds_oldest
FROM groups AS g
LEFT JOIN past AS p ON p.owner = g.owner AND p.flavor = g.flavor
LEFT JOIN present AS n ON n.owner = g.owner AND n.flavor = g.flavor
ORDER BY counted(g.owner), counted(g.flavor), g.owner, g.flavor;

-- @lead
WITH sums AS (
    SELECT sum(started) AS started, sum(waiting) AS waiting, sum(waiting_gpus) AS gpus,
        max(waiting_seconds_oldest) AS oldest, max(wait_seconds_longest) AS longest,
        arg_max(owner, wait_seconds_longest) AS slowest
    FROM report
)
SELECT
    CASE
        WHEN coalesce(started, 0) = 0 THEN 'No run started in this period.'
        ELSE counted_as(started, 'run') || ' started; the longest wait was ' || span(longest) || ', of ' || slowest || '.'
    END AS past,
    CASE
        WHEN coalesce(waiting, 0) = 0 THEN 'Nothing waits now.'
        ELSE counted_as(waiting, 'run') || CASE WHEN waiting = 1 THEN ' waits' ELSE ' wait' END || ' now for '
            || counted_as(gpus, 'GPU') || ', the oldest for ' || span(oldest) || '.'
    END AS present
FROM sums;

-- @figures
SELECT 'Mean wait' AS label, span(3600 * sum(wait_hours) / sum(started)) AS value,
    coalesce((
        SELECT span(3600 * sum(b.wait_hours) / sum(b.started)) || ' in the period before'
        FROM before AS b HAVING sum(b.started) > 0
    ), 'of runs that started') AS note
FROM report HAVING sum(started) > 0
UNION ALL
SELECT 'Longest wait', span(max(wait_seconds_longest)), arg_max(owner, wait_seconds_longest)
FROM report HAVING max(wait_seconds_longest) IS NOT NULL
UNION ALL
SELECT 'Started', counted_as(sum(started), 'run'), change(sum(started), (SELECT sum(b.started) FROM before AS b))
FROM report HAVING count(*) > 0
UNION ALL
SELECT 'Waiting now', counted_as(sum(waiting), 'run'), counted_as(sum(waiting_gpus), 'GPU')
FROM report HAVING count(*) > 0;

-- @chart each: Hours that nine of ten runs waited at most, by owner; the line: half of them
SELECT
    owner || CASE WHEN count(*) OVER (PARTITION BY owner) > 1 THEN ', ' || flavor ELSE '' END AS label, -- waits do not add up
    wait_seconds_p90 / 3600 AS y,
    flavor AS series,
    wait_seconds_p50 / 3600 AS mark
FROM report
WHERE wait_seconds_p90 IS NOT NULL
ORDER BY y DESC, label;

-- @table sum=Started, Waiting now, GPUs waited for
SELECT
    owner AS "Owner",
    flavor AS "GPUs",
    started AS "Started",
    to_seconds(wait_seconds_p50) AS "Half within",
    to_seconds(wait_seconds_p90) AS "Nine of ten within",
    to_seconds(wait_seconds_longest) AS "Longest",
    waiting AS "Waiting now",
    waiting_gpus AS "GPUs waited for",
    to_seconds(waiting_seconds_oldest) AS "Oldest waits for"
FROM report
