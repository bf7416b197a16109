-- Bottlenecks: what GPUs waited for, by the bound that was in their way.
--
-- A run's wait counts for the bound that lacks most, as its plan said (the first of its shortages): an envelope or another
-- cap, a flavor (too few of it are free), a domain (the run may use only that), or fragmentation (as many as it asks for
-- are free, but not where they fit together). Where no shortage is stated, for its reason. gpu_hours: GPUs asked for x time.
-- What a bound is worth (the price of one GPU more) is in no plan yet, so it is not here.
-- @check gpu_seconds = waited
-- @chart bars x=bound y=gpu_hours by=subject
WITH stretches_of_free AS MATERIALIZED (
    SELECT flavor, began, began + seconds AS ended, free FROM room WHERE flavor IS NOT NULL AND free > 0
),
levels AS (
    SELECT flavor, moment, sum(sum(change)) OVER (PARTITION BY flavor ORDER BY moment) AS free
    FROM (
        SELECT flavor, began AS moment, free AS change FROM stretches_of_free
        UNION ALL SELECT flavor, ended, -free FROM stretches_of_free
    )
    GROUP BY flavor, moment
),
asked AS (
    SELECT namespace, name, arg_max(total, last_seen) AS gpus, arg_max(flavor, last_seen) AS flavor,
        arg_max(owner, last_seen) AS owner
    FROM runs GROUP BY namespace, name
),
stretches AS (
    SELECT
        w.*,
        a.gpus,
        a.flavor,
        a.owner,
        w.shorts[1]['rule'] AS rule,
        w.shorts[1]['subject'] AS what,
        greatest(w.since, getvariable('since')) AS began,
        least(coalesce(w.until, getvariable('known')), getvariable('until')) AS ended
    FROM waits_history AS w
    JOIN asked AS a ON a.namespace = w.namespace AND a.name = w.name
),
bound AS (
    SELECT
        s.*,
        CASE
            WHEN s.rule IS NULL THEN 'none'
            WHEN s.rule <> 'capacity' THEN s.rule
            WHEN starts_with(s.what, 'domain=') THEN 'domain'
            WHEN l.free >= s.gpus THEN 'fragmentation'
            ELSE 'flavor'
        END AS bound
    FROM stretches AS s
    ASOF LEFT JOIN levels AS l ON l.flavor = s.flavor AND s.began >= l.moment
    WHERE s.ended > s.began
)
SELECT
    bound,
    coalesce(what, reason) AS subject,
    count(DISTINCT (namespace, name)) AS runs,
    count(DISTINCT owner) AS owners,
    sum(gpus * (ended - began))::BIGINT / 3600 AS gpu_hours,
    100 * gpu_hours / nullif(sum(sum(gpus * (ended - began))::BIGINT / 3600) OVER (), 0) AS percent,
    (sum(gpus) FILTER (ended = getvariable('until')))::BIGINT AS waiting_gpus,
    sum(gpus * (ended - began))::BIGINT AS gpu_seconds
FROM bound
GROUP BY ALL
ORDER BY gpu_hours DESC, bound, subject
