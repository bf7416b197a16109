-- What every report can select from. Times are Unix seconds unless a name says otherwise; the period is [since, until).
--
-- Variables, through getvariable('NAME'):
--   since, until   the period
--   stop           until, or a second later where that is the last cycle: what happens before it is of the period
--   begin          the first second that anything is known of
--   known          the last cycle's time: an open lease is known to run until then
--   bucket         the length of a step of charts over time, in seconds
--
-- Tables: cycles, runs, leases, opening, discounts (exporters/lake/foldtables.py), and those below. Every lease is there
-- once, in its last form; lease_forms has all that the days' last cycles saw.

-- iso: a time as people and FOCUS write it.
CREATE MACRO iso(seconds) AS strftime(make_timestamp(seconds::BIGINT * 1000000), '%Y-%m-%dT%H:%M:%SZ');

-- counted: a name to order by, 2 before 10: its numbers filled up with zeros.
CREATE MACRO counted(name) AS array_to_string(
    list_transform(
        regexp_extract_all(name, '[0-9]+|[^0-9]+'),
        LAMBDA part: CASE WHEN part[1] BETWEEN '0' AND '9' THEN lpad(part, 64, '0') ELSE part END
    ),
    ''
);

-- many: a number with its noun: 1 lease, 2 leases.
CREATE MACRO many(number, noun) AS number || ' ' || noun || CASE WHEN number = 1 THEN '' ELSE 's' END;

-- exhausted: when a cap will be reached, if what was used in the last `span` seconds goes on; null: not before `stop`.
CREATE MACRO exhausted(cap, used, paced, span, stop) AS (
    CASE
        WHEN used >= cap THEN getvariable('until')
        WHEN paced > 0 AND (stop IS NULL OR getvariable('until') + (cap - used) / paced * span < stop)
            THEN (getvariable('until') + ceil((cap - used) / paced * span))::BIGINT
    END
);

-- stands: whether something that stood in [begin, stop) did so at the period's end (stop null: it still does).
CREATE MACRO stands(begin, stop) AS begin <= getvariable('until') AND coalesce(stop > getvariable('until'), TRUE);

-- nodes, budgets, envelopes, aggregates, use_caps, quarantine, foreign_gpus, waits, prices: as the period's end found
-- them.
-- NAME_history (foreign_history): every form in the period, with the time that it stood, [since, until).
CREATE VIEW nodes AS FROM nodes_history WHERE stands(since, until);
CREATE VIEW budgets AS FROM budgets_history WHERE stands(since, until);
CREATE VIEW envelopes AS FROM envelopes_history WHERE stands(since, until);
CREATE VIEW aggregates AS FROM aggregates_history WHERE stands(since, until);
CREATE VIEW use_caps AS FROM use_caps_history WHERE stands(since, until);
CREATE VIEW quarantine AS FROM quarantine_history WHERE stands(since, until);
CREATE VIEW foreign_gpus AS FROM foreign_history WHERE stands(since, until);
CREATE VIEW waits AS FROM waits_history WHERE stands(since, until);
CREATE VIEW prices AS FROM prices_history WHERE stands(since, until);

-- payers: envelopes with the owner of their Budget. A lease names its payer by budget, envelope, owner and flavor: an
-- envelope of that name by another owner or for another flavor is another payer, and was charged nothing of it.
CREATE VIEW payers AS
SELECT e.*, b.owner FROM envelopes AS e JOIN budgets AS b ON b.name = e.budget;

-- weights: what a GPU weighs in thousandths, 1000 an Active one, a spare one its discount of the time [since, until).
CREATE VIEW weights AS
SELECT 'Active' AS role, 0 AS since, 9223372036854775807 AS until, 1000 AS milli
UNION ALL
SELECT 'Spare', coalesce(since, 0), lead(since, 1, 9223372036854775807) OVER (ORDER BY since NULLS FIRST), milli
FROM discounts;

-- ledger: a row per segment of a lease (spec §3.6), up to the period's end, a spare's cut where the discount changed.
-- seconds: its length. milli_gpus: what its GPUs weigh together. class: owned, shared, borrowed or unfunded.
-- is_open: the lease held it at the period's end. An open lease lasts until the last cycle that had it.
CREATE VIEW ledger AS
WITH entries AS (
    SELECT
        * EXCLUDE (funding, name),
        name AS lease,
        len(ordinals) AS gpus,
        unnest(funding) AS entry
    FROM leases
),
parts AS (
    SELECT
        * EXCLUDE (entry, start, ended, closed, seen, closure_reason),
        entry['class'] AS class,
        entry['rate_milli'] AS rate_milli,
        entry['from'] AS began,
        least(coalesce(entry['to'], CASE WHEN closed THEN ended ELSE seen END), getvariable('until')) AS ended,
        CASE WHEN entry['to'] IS NULL THEN NOT closed ELSE entry['to'] > getvariable('until') END AS is_open
    FROM entries
    WHERE entry['from'] < least(coalesce(entry['to'], CASE WHEN closed THEN ended ELSE seen END), getvariable('until'))
    OR (entry['to'] IS NULL AND NOT closed AND entry['from'] <= getvariable('until'))
)
SELECT
    p.* REPLACE (
        greatest(p.began, w.since) AS began,
        least(p.ended, w.until) AS ended,
        p.is_open AND w.until >= greatest(p.ended, p.began + 1) AS is_open
    ),
    p.gpus * w.milli AS milli_gpus
FROM parts AS p
JOIN weights AS w ON w.role = p.role AND w.since < greatest(p.ended, p.began + 1) AND w.until > p.began;

-- paid: funded segments, and what leases that were pruned before the lake's first cycle had been charged: these are of no
-- run and no lease. A row is milli_gpus in every second of [began, ended).
CREATE VIEW paid AS
SELECT * FROM ledger WHERE class <> 'unfunded' AND budget IS NOT NULL
UNION ALL BY NAME
SELECT
    budget, envelope, owner, run_owner, flavor, role, funding_class AS class, rate_milli, FALSE AS is_open,
    span['from'] AS began, least(span['to'], getvariable('until')) AS ended, span['milli_gpus'] AS milli_gpus
FROM (SELECT *, unnest(spans) AS span FROM opening)
WHERE span['from'] < getvariable('until');

-- segments: the same, cut to the period.
CREATE VIEW segments AS
SELECT
    * REPLACE (greatest(began, getvariable('since')) AS began),
    ended - greatest(began, getvariable('since')) AS seconds
FROM ledger
WHERE ended > getvariable('since');

-- monthly, charges: segments, and what is paid, in the period, cut at the first second of each month (UTC) too; month: as
-- 2026-01.
CREATE MACRO by_month(name) AS TABLE (
    WITH months AS (
        SELECT
            * REPLACE (greatest(began, getvariable('since')) AS began),
            unnest(generate_series(
                date_trunc('month', make_timestamp(greatest(began, getvariable('since')) * 1000000)),
                make_timestamp(ended * 1000000) - INTERVAL 1 SECOND,
                INTERVAL 1 MONTH
            )) AS month_begin
        FROM query_table(name)
        WHERE ended > greatest(began, getvariable('since'))
    ),
    cut AS (
        SELECT * REPLACE (
            greatest(began, epoch(month_begin)::BIGINT) AS began,
            least(ended, epoch(month_begin + INTERVAL 1 MONTH)::BIGINT) AS ended
        )
        FROM months
    )
    SELECT * EXCLUDE (month_begin), ended - began AS seconds, strftime(month_begin, '%Y-%m') AS month FROM cut
);
CREATE VIEW monthly AS FROM by_month('ledger');

-- charges: what is paid, by month, with what it costs.
--   milli_gpu_seconds        weight x seconds
--   milli_gpu_seconds_rated  the same times the rate, in thousandths of a credit per GPU-hour: 3.6e9 of it are a credit
CREATE VIEW charges AS
SELECT
    *,
    milli_gpus * seconds AS milli_gpu_seconds,
    milli_gpus * seconds::HUGEINT * coalesce(rate_milli, 0) AS milli_gpu_seconds_rated
FROM by_month('paid');

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
    -- As DOUBLE, which holds every whole number up to 2^53, a window sums three times as fast as DuckDB's HUGEINT.
    SELECT
        node,
        moment AS began,
        lead(moment, 1, getvariable('until')) OVER (PARTITION BY node ORDER BY moment) AS ended,
        (sum(active::DOUBLE) OVER sofar)::BIGINT AS active,
        (sum(standby::DOUBLE) OVER sofar)::BIGINT AS standby,
        (sum(foreign_pods::DOUBLE) OVER sofar)::BIGINT AS foreign_pods,
        (sum(gpus::DOUBLE) OVER sofar)::BIGINT AS gpus,
        sum(stopped::DOUBLE) OVER sofar > 0 AS stops
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
