-- Bottlenecks: what GPUs waited for, by the bound that was in their way.
--
-- A run's wait counts for the bound that lacks most, as its plan said (the first of its shortages): an envelope or another
-- cap, a flavor (too few of it are free), a domain (the run may use only that), or fragmentation (as many as it asks for
-- are free, but not where they fit together). Where no shortage is stated, for its reason. GPU-hours are GPUs asked for times
-- time.
--
-- One more of a bound (a GPU, a GPU-hour, a credit) is worth what the plans' relaxation says, in GPUs of a run just created,
-- where a GPU of an old run counts more; GPUs that would start are beside it. In CSV, price and admits_gpus are means over the
-- priced_hours in which there was a price, and price_now stands at the period's end. No price: more of it alone admits nothing.
-- A bound without hours of waiting has a price, but was never what some run lacked most. No plan can gain more than prices say
-- over its relaxation; gangs need all their GPUs at once (docs/planner.md, Prices).
-- @check gpu_seconds = waited
WITH stretches_of_free AS MATERIALIZED (
    SELECT flavor, began, began + seconds AS ended, free FROM room WHERE flavor IS NOT NULL AND free > 0
),
levels AS (
    SELECT flavor, moment, sum(sum(change)::DOUBLE) OVER (PARTITION BY flavor ORDER BY moment) AS free
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
),
waited AS (
    SELECT
        bound,
        coalesce(what, reason) AS subject,
        CASE WHEN bound IN ('flavor', 'domain', 'fragmentation') THEN 'capacity' ELSE bound END AS rule,
        count(DISTINCT (namespace, name)) AS runs,
        count(DISTINCT owner) AS owners,
        (sum(gpus) FILTER (ended = getvariable('until')))::BIGINT AS waiting_gpus,
        sum(gpus * (ended - began))::BIGINT AS gpu_seconds
    FROM bound
    GROUP BY ALL
),
priced AS (
    SELECT
        rule,
        subject,
        any_value(unit) AS unit,
        sum(centi_value * seconds) / nullif(sum(seconds), 0) / 100 AS price,
        sum(centi_gpus * seconds) / nullif(sum(seconds), 0) / 100 AS admits_gpus,
        max(centi_value) FILTER (stands(since, until)) / 100 AS price_now,
        sum(seconds)::BIGINT / 3600 AS priced_hours
    FROM (
        SELECT
            *,
            least(coalesce(until, getvariable('known')), getvariable('until'))
            - greatest(since, getvariable('since')) AS seconds
        FROM prices_history
    )
    WHERE seconds > 0 OR stands(since, until)
    GROUP BY ALL
)
SELECT
    CASE
        WHEN w.bound IS NOT NULL THEN w.bound
        WHEN p.rule <> 'capacity' THEN p.rule
        WHEN starts_with(p.subject, 'domain=') THEN 'domain'
        ELSE 'flavor'
    END AS bound,
    coalesce(w.subject, p.subject) AS subject,
    coalesce(w.runs, 0) AS runs,
    coalesce(w.owners, 0) AS owners,
    coalesce(w.gpu_seconds, 0) / 3600 AS gpu_hours,
    100 * coalesce(w.gpu_seconds, 0) / nullif(sum(w.gpu_seconds) OVER (), 0) AS percent,
    w.waiting_gpus,
    p.unit,
    p.price,
    p.admits_gpus,
    p.price_now,
    p.priced_hours,
    coalesce(w.gpu_seconds, 0) AS gpu_seconds
FROM waited AS w
FULL JOIN priced AS p ON p.rule = w.rule AND p.subject = w.subject
ORDER BY gpu_hours DESC, p.price DESC NULLS LAST, bound, subject;

-- @lead
WITH sums AS (
    SELECT
        sum(gpu_hours) AS hours,
        sum(waiting_gpus) AS waiting,
        arg_max(subject, gpu_hours) FILTER (gpu_hours > 0) AS first,
        arg_max(bound, gpu_hours) FILTER (gpu_hours > 0) AS bound,
        max(percent) AS percent,
        (SELECT count(*) FROM waits_history AS w WHERE stands(w.since, w.until)) AS still
    FROM report
)
SELECT CASE
    WHEN coalesce(hours, 0) = 0 AND still > 0
        THEN 'Waiting as this period ends: ' || counted_as(still, 'run') || '; it has no hours of that yet.'
    WHEN coalesce(hours, 0) = 0 THEN 'No run waited in this period.'
    ELSE 'Runs waited ' || number(hours) || ' GPU-hours, ' || share(percent, 100) || ' of them for '
        || CASE bound
            WHEN 'flavor' THEN 'more free GPUs of ' || first
            WHEN 'domain' THEN 'room in ' || replace(first, 'domain=', '')
            WHEN 'fragmentation' THEN 'free GPUs of ' || first || ' that lie together'
            WHEN 'none' THEN 'what is no shortage (' || first || ')'
            ELSE 'the ' || bound || ' of ' || first
        END || '.'
END
FROM sums;

-- @figures
SELECT 'Waited' AS label, number(coalesce(sum(gpu_hours), 0)) || ' GPU-hours' AS value,
    change(sum(gpu_hours), (SELECT sum(b.gpu_hours) FROM before AS b)) AS note
FROM report
UNION ALL
SELECT 'Waiting now', counted_as(sum(waiting_gpus), 'GPU'), 'asked for by runs that hold nothing'
FROM report HAVING sum(waiting_gpus) > 0
UNION ALL
SELECT 'Dearest bound', arg_max(subject, price_now), 'one more ' || arg_max(unit, price_now) || ' is worth '
    || format('{:.2f}', max(price_now)::DOUBLE) || ' GPUs of new runs'
FROM report HAVING max(price_now) > 0;

-- @chart across: GPU-hours waited, by what was in the way
SELECT subject AS label, gpu_hours AS y, bound AS series
FROM report
WHERE gpu_hours > 0
ORDER BY gpu_hours DESC, label, bound;

-- @table sum=GPU-hours waited, GPUs waiting now
SELECT
    bound AS "Bound",
    subject AS "Of",
    runs AS "Runs",
    gpu_hours AS "GPU-hours waited",
    percent AS "Share %",
    waiting_gpus AS "GPUs waiting now",
    unit AS "One more",
    price_now AS "Is worth now",
    admits_gpus AS "Starts GPUs"
FROM report
