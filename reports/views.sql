-- What every report can select from. Times are Unix seconds unless a name says otherwise; the period is [since, until).
--
-- Variables, through getvariable('NAME'):
--   since, until   the period
--   begin          the first second that anything is known of
--   known          the last cycle's time: an open lease is known to run until then
--   spare_milli    what a spare GPU costs of a whole one, in thousandths
--   bucket         the length of a step of charts over time, in seconds
--
-- Tables: cycles, runs, leases (columns: exporters/foldtables.py), and those below. Every lease is there once, in its last
-- form; lease_forms has all that the days' last cycles saw.

-- iso: a time as people and FOCUS write it.
CREATE MACRO iso(seconds) AS strftime(make_timestamp(seconds * 1000000), '%Y-%m-%dT%H:%M:%SZ');

-- exhausted: when a cap will be reached, if what was used in the last `span` seconds goes on; null: not before `stop`.
CREATE MACRO exhausted(cap, used, paced, span, stop) AS (
    CASE
        WHEN used >= cap THEN getvariable('until')
        WHEN paced > 0 AND (stop IS NULL OR getvariable('until') + (cap - used) / paced * span < stop)
            THEN (getvariable('until') + ceil((cap - used) / paced * span))::BIGINT
    END
);

-- stands: whether something that stood in [begin, stop) did so at the period's end (stop null: it still does).
CREATE MACRO stands(begin, stop) AS begin <= getvariable('until') AND coalesce(stop > getvariable('until'), true);

-- nodes, budgets, envelopes, aggregates, quarantine, foreign_gpus, waits: as the period's end found them. NAME_history (foreign_history):
-- every form in the period, with the time that it stood, [since, until).
CREATE VIEW nodes AS FROM nodes_history WHERE stands(since, until);
CREATE VIEW budgets AS FROM budgets_history WHERE stands(since, until);
CREATE VIEW envelopes AS FROM envelopes_history WHERE stands(since, until);
CREATE VIEW aggregates AS FROM aggregates_history WHERE stands(since, until);
CREATE VIEW quarantine AS FROM quarantine_history WHERE stands(since, until);
CREATE VIEW foreign_gpus AS FROM foreign_history WHERE stands(since, until);
CREATE VIEW waits AS FROM waits_history WHERE stands(since, until);

-- ledger: a row per segment of a lease (spec §3.6), up to the period's end. seconds: its length.
-- milli_gpus: what its GPUs weigh together, 1000 a GPU, a spare less. class: owned, shared, borrowed or unfunded.
-- is_open: the lease held it at the period's end. An open lease lasts until the last cycle that had it.
CREATE VIEW ledger AS
WITH entries AS (
    SELECT
        * EXCLUDE (funding, name),
        name AS lease,
        len(ordinals) AS gpus,
        len(ordinals) * CASE role WHEN 'Spare' THEN getvariable('spare_milli') ELSE 1000 END AS milli_gpus,
        unnest(funding) AS entry
    FROM leases
)
SELECT
    * EXCLUDE (entry, start, ended, closed, seen, closure_reason),
    entry['class'] AS class,
    entry['rate_milli'] AS rate_milli,
    entry['from'] AS began,
    least(coalesce(entry['to'], CASE WHEN closed THEN ended ELSE seen END), getvariable('until')) AS ended,
    CASE WHEN entry['to'] IS NULL THEN NOT closed ELSE entry['to'] > getvariable('until') END AS is_open
FROM entries
WHERE entry['from'] < least(coalesce(entry['to'], CASE WHEN closed THEN ended ELSE seen END), getvariable('until'))
OR (entry['to'] IS NULL AND NOT closed AND entry['from'] <= getvariable('until'));

-- segments: the same, cut to the period.
CREATE VIEW segments AS
SELECT
    * REPLACE (greatest(began, getvariable('since')) AS began),
    ended - greatest(began, getvariable('since')) AS seconds
FROM ledger
WHERE ended > getvariable('since');

-- monthly: the same, cut at the first second of each month (UTC) too; month: as 2026-01.
CREATE VIEW monthly AS
WITH months AS (
    SELECT
        *,
        unnest(generate_series(
            date_trunc('month', make_timestamp(began * 1000000)),
            make_timestamp(ended * 1000000) - INTERVAL 1 SECOND,
            INTERVAL 1 MONTH
        )) AS month_begin
    FROM segments
    WHERE seconds > 0
)
SELECT
    * EXCLUDE (month_begin) REPLACE (
        greatest(began, epoch(month_begin)::BIGINT) AS began,
        least(ended, epoch(month_begin + INTERVAL 1 MONTH)::BIGINT) AS ended,
        least(ended, epoch(month_begin + INTERVAL 1 MONTH)::BIGINT) - greatest(began, epoch(month_begin)::BIGINT) AS seconds
    ),
    strftime(month_begin, '%Y-%m') AS month
FROM months;

-- charges: funded segments, by month, with what they cost.
--   milli_gpu_seconds        weight x seconds
--   milli_gpu_seconds_rated  the same times the rate, in thousandths of a credit per GPU-hour: 3.6e9 of it are a credit
CREATE VIEW charges AS
SELECT
    *,
    milli_gpus * seconds AS milli_gpu_seconds,
    milli_gpus * seconds::HUGEINT * coalesce(rate_milli, 0) AS milli_gpu_seconds_rated
FROM monthly
WHERE class <> 'unfunded' AND budget IS NOT NULL;

-- domains: which domain a node is in, named as people see it: region/cluster/domain, a node without one by its own name.
CREATE VIEW domains AS
SELECT
    name AS node,
    arg_max(flavor, since) AS flavor,
    arg_max(concat_ws('/', region, cluster, coalesce(domain, name)), since) AS domain
FROM nodes_history
GROUP BY name;

-- room: what became of every GPU of a node, as stretches of time in which nothing changed: cut to the period, at steps of
-- `bucket` seconds too (step: the begin of one). Of its gpus, active are held by Active leases, standby by spares alone,
-- foreign by pods that are no run's; stopped are idle on a node that takes nothing new; free are the rest, and broken of
-- those are free on a node that is not wholly so: no pod of a whole node fits there.
CREATE VIEW room AS
WITH steps AS (
    SELECT unnest(generate_series(
        getvariable('since') // getvariable('bucket') * getvariable('bucket'),
        getvariable('until') - 1,
        getvariable('bucket')
    )) AS step
),
held AS MATERIALIZED (
    SELECT node, began, ended, role, gpus FROM segments
),
spares AS (
    -- A spare's slots on which somebody's Active lease sits for a while.
    SELECT s.node, greatest(s.began, a.began) AS began, least(s.ended, a.ended) AS ended,
        len(list_intersect(s.ordinals, a.ordinals)) AS gpus
    FROM (FROM segments WHERE role = 'Spare') AS s
    JOIN (FROM segments WHERE role = 'Active') AS a ON a.node = s.node AND a.began < s.ended AND s.began < a.ended
    WHERE len(list_intersect(s.ordinals, a.ordinals)) > 0
),
stretches AS (
    SELECT node, began, ended, gpus AS active, 0 AS standby, 0 AS foreign_pods, 0 AS gpus, 0 AS stopped
    FROM held WHERE role = 'Active'
    UNION ALL SELECT node, began, ended, 0, gpus, 0, 0, 0 FROM held WHERE role = 'Spare'
    UNION ALL SELECT node, began, ended, 0, -gpus, 0, 0, 0 FROM spares
    UNION ALL SELECT node, since, coalesce(until, getvariable('known')), 0, 0, gpus, 0, 0 FROM foreign_history
    UNION ALL
    SELECT name, since, coalesce(until, getvariable('known')), 0, 0, 0, gpus,
        CASE WHEN ready AND NOT unschedulable AND NOT out_of_service THEN 0 ELSE 1 END
    FROM nodes_history
),
inside AS (
    SELECT * REPLACE (
        greatest(began, getvariable('since')) AS began, least(ended, getvariable('until')) AS ended
    )
    FROM stretches
    WHERE began < getvariable('until') AND ended > getvariable('since')
),
changes AS (
    SELECT node, began AS moment, active, standby, foreign_pods, gpus, stopped FROM inside
    UNION ALL SELECT node, ended, -active, -standby, -foreign_pods, -gpus, -stopped FROM inside
    UNION ALL
    SELECT node, greatest(step, getvariable('since')), 0, 0, 0, 0, 0
    FROM (SELECT DISTINCT node FROM inside) CROSS JOIN steps
),
levels AS (
    -- Changes of one moment follow each other here; what lies between them has no length, and is left out below.
    SELECT
        node,
        moment AS began,
        lead(moment, 1, getvariable('until')) OVER (PARTITION BY node ORDER BY moment) AS ended,
        (sum(active) OVER sofar)::BIGINT AS active,
        (sum(standby) OVER sofar)::BIGINT AS standby,
        (sum(foreign_pods) OVER sofar)::BIGINT AS foreign_pods,
        (sum(gpus) OVER sofar)::BIGINT AS gpus,
        sum(stopped) OVER sofar > 0 AS stops
    FROM changes
    WINDOW sofar AS (PARTITION BY node ORDER BY moment ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
),
idle AS (
    SELECT *, greatest(0, gpus - active - standby - foreign_pods) AS idle FROM levels WHERE ended > began
)
SELECT
    coalesce(d.domain, '(unknown)') AS domain,
    d.flavor,
    i.node,
    i.began // getvariable('bucket') * getvariable('bucket') AS step,
    i.began,
    i.ended - i.began AS seconds,
    i.gpus,
    i.active,
    i.standby,
    i.foreign_pods,
    CASE WHEN i.stops THEN i.idle ELSE 0 END AS stopped,
    CASE WHEN i.stops THEN 0 ELSE i.idle END AS free,
    CASE WHEN i.stops OR i.idle = i.gpus THEN 0 ELSE i.idle END AS broken
FROM idle AS i
LEFT JOIN domains AS d ON d.node = i.node;
