-- Utilisation: how full every domain was over time, and how broken its free GPUs were.
--
-- GPUs are means over time. Held are those of Active leases, standby those of spares alone, other pods' (foreign) those of
-- pods that are no run's; stopped are idle on nodes that take nothing new (cordoned, not Ready, out of service); free is the
-- rest. Broken is the part of free that lies on nodes partly taken, where no pod of a whole node fits: fragmentation is
-- broken of free. How many GPUs there were is known from the lake's first cycle on: no period begins before it.
-- @reads cycles
-- @check held_gpu_seconds = active
SELECT
    iso(step) AS time,
    domain,
    nullif(sum(gpus * seconds), 0)::DOUBLE / max(length) AS gpus,
    sum(active * seconds)::DOUBLE / max(length) AS held,
    sum(standby * seconds)::DOUBLE / max(length) AS standby,
    sum(foreign_pods * seconds)::DOUBLE / max(length) AS "foreign",
    sum(stopped * seconds)::DOUBLE / max(length) AS stopped,
    sum(free * seconds)::DOUBLE / max(length) AS free,
    sum(broken * seconds)::DOUBLE / max(length) AS broken,
    100 * sum(active * seconds)::DOUBLE / nullif(sum(gpus * seconds), 0) AS utilisation_percent,
    100 * sum(broken * seconds)::DOUBLE / nullif(sum(free * seconds), 0) AS fragmentation_percent,
    max(length) AS seconds,
    sum(active * seconds)::BIGINT AS held_gpu_seconds
FROM (
    SELECT
        *,
        least(step + getvariable('bucket'), getvariable('until')) - greatest(step, getvariable('since')) AS length
    FROM room
)
GROUP BY step, domain
ORDER BY step, counted(domain), domain;

-- @lead
WITH sums AS (
    SELECT
        sum(held_gpu_seconds) / nullif(sum(gpus * seconds), 0) AS part,
        sum(broken * seconds) / nullif(sum(free * seconds), 0) AS broken
    FROM report
)
SELECT CASE
    WHEN part IS NULL THEN 'How full the fleet was is not known.'
    ELSE share(part, 1) || ' of the fleet''s GPUs were held on average'
        || CASE WHEN broken IS NULL THEN '.' ELSE '; of those free ' || share(broken, 1)
            || ' lay on nodes partly taken, where no pod of a whole node fits.' END
END
FROM sums;

-- @figures
WITH periods AS (
    SELECT 'now' AS period, * FROM report UNION ALL SELECT 'before', * FROM before
),
sums AS (
    SELECT
        period,
        sum(gpus * seconds) AS gpus,
        sum(held * seconds) AS held,
        sum(standby * seconds) AS standby,
        sum("foreign" * seconds) AS other_pods,
        sum(stopped * seconds) AS stopped,
        sum(free * seconds) AS free,
        sum(broken * seconds) AS broken
    FROM periods GROUP BY period
),
now AS (
    SELECT s.*, b.held / nullif(b.gpus, 0) AS held_before FROM sums AS s
    LEFT JOIN sums AS b ON b.period = 'before' WHERE s.period = 'now'
)
SELECT 'Held' AS label, share(held, gpus) AS value,
    coalesce(share(held_before, 1) || ' in the period before', 'of all GPUs, on average') AS note FROM now
UNION ALL
SELECT 'Free', share(free, gpus), 'of all GPUs' FROM now
UNION ALL
SELECT 'Broken', share(broken, free), 'of what is free' FROM now WHERE free > 0
UNION ALL
SELECT 'On standby', share(standby, gpus), 'spares' FROM now WHERE standby > 0
UNION ALL
SELECT 'Stopped', share(stopped, gpus), 'cordoned, not Ready or out of service' FROM now WHERE stopped > 0;

-- @chart bars: GPUs of the fleet, by what became of them
SELECT
    time::TIMESTAMP AS x,
    moment(epoch(time::TIMESTAMP) + getvariable('bucket')) AS x2,
    unnest([sum(held), sum(standby), sum("foreign"), sum(stopped), sum(broken), sum(free - broken)]) AS y,
    unnest(['held', 'standby', 'other pods', 'stopped', 'free, on partly taken nodes', 'free']) AS series
FROM report
GROUP BY time
ORDER BY x;

-- @table sum=GPUs, Held, Standby, Other pods, Stopped, Free
SELECT
    domain AS "Domain",
    round(avg(gpus))::BIGINT AS "GPUs",
    sum(held * seconds) / sum(seconds) AS "Held",
    nullif(sum(standby * seconds), 0) / sum(seconds) AS "Standby",
    nullif(sum("foreign" * seconds), 0) / sum(seconds) AS "Other pods",
    nullif(sum(stopped * seconds), 0) / sum(seconds) AS "Stopped",
    sum(free * seconds) / sum(seconds) AS "Free",
    100 * sum(held_gpu_seconds) / nullif(sum(gpus * seconds), 0) AS "Held %",
    100 * sum(broken * seconds) / nullif(sum(free * seconds), 0) AS "Broken % of free"
FROM report
GROUP BY domain
ORDER BY counted(domain), domain
