-- What every report can select from. Times are Unix seconds unless a name says otherwise; the period is [since, until).
--
-- Variables, through getvariable('NAME'):
--   since, until   the period
--   begin          the first second that anything is known of
--   known          the last cycle's time: an open lease is known to run until then
--   spare_milli    what a spare GPU costs of a whole one, in thousandths
--   bucket         the length of a step of charts over time, in seconds
--
-- Tables: cycles, runs (columns: exporters/foldtables.py), and those below.

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

-- nodes, budgets, envelopes, aggregates, quarantine, waits: as the period's end found them. NAME_history: every form in the period,
-- with the time that it stood, [since, until).
CREATE VIEW nodes AS FROM nodes_history WHERE stands(since, until);
CREATE VIEW budgets AS FROM budgets_history WHERE stands(since, until);
CREATE VIEW envelopes AS FROM envelopes_history WHERE stands(since, until);
CREATE VIEW aggregates AS FROM aggregates_history WHERE stands(since, until);
CREATE VIEW quarantine AS FROM quarantine_history WHERE stands(since, until);
CREATE VIEW waits AS FROM waits_history WHERE stands(since, until);

-- leases: every lease in its last form. A closed lease stays closed, whatever a cycle with another clock says.
CREATE TABLE leases AS
SELECT * FROM lease_forms
QUALIFY row_number() OVER (PARTITION BY namespace, name ORDER BY closed DESC, seen DESC, len(funding) DESC) = 1;

-- ledger: a row per segment of a lease (spec §3.6), up to the period's end. seconds: its length.
-- milli_gpus: what its GPUs weigh together, 1000 a GPU, a spare less. class: owned, shared, borrowed or unfunded.
-- is_open: the lease held it at the period's end. An open lease lasts until the last cycle that had it.
CREATE TABLE ledger AS
WITH entries AS (
    SELECT
        * EXCLUDE (funding, name, ordinals),
        name AS lease,
        len(ordinals) AS gpus,
        len(ordinals) * CASE role WHEN 'Spare' THEN getvariable('spare_milli') ELSE 1000 END AS milli_gpus,
        unnest(funding) AS entry
    FROM leases
)
SELECT
    * EXCLUDE (entry, start, ended, closed, seen),
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

-- charges: funded segments, cut at the first second of each month (UTC), with what they cost.
--   milli_gpu_seconds        weight x seconds
--   milli_gpu_seconds_rated  the same times the rate, in thousandths of a credit per GPU-hour: 3.6e9 of it are a credit
CREATE VIEW charges AS
WITH months AS (
    SELECT
        *,
        unnest(generate_series(
            date_trunc('month', make_timestamp(began * 1000000)),
            make_timestamp(ended * 1000000) - INTERVAL 1 SECOND,
            INTERVAL 1 MONTH
        )) AS month_begin
    FROM segments
    WHERE class <> 'unfunded' AND budget IS NOT NULL
),
cut AS (
    SELECT
        * REPLACE (
            greatest(began, epoch(month_begin)::BIGINT) AS began,
            least(ended, epoch(month_begin + INTERVAL 1 MONTH)::BIGINT) AS ended
        )
    FROM months
)
SELECT
    * EXCLUDE (month_begin, seconds),
    strftime(month_begin, '%Y-%m') AS month,
    ended - began AS seconds,
    milli_gpus * (ended - began) AS milli_gpu_seconds,
    milli_gpus * (ended - began)::HUGEINT * coalesce(rate_milli, 0) AS milli_gpu_seconds_rated
FROM cut;
