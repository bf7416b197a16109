-- Lottery: how often each owner was drawn, against how often a fair draw takes it.
--
-- Before each pick every owner in the pool is as likely as any other, so one among n counts 1/n towards what is expected.
-- sigma is the standard deviation of a fair draw, deviation how many of them the picks lie from what is expected: beyond 4
-- for one owner in 15,000. Each draw can be verified for itself (docs/verify-lottery.md).
-- @check drawn = lost by owner:run_owner
WITH picks AS (
    SELECT *, 1 / owners::DOUBLE AS chance
    FROM draws
    WHERE time >= getvariable('since') AND time < getvariable('stop')
)
SELECT
    owner,
    count(*) AS picks,
    count(DISTINCT (time, reservation)) AS draws,
    sum(tokens)::BIGINT AS tokens,
    count(*) FILTER (drawn) AS drawn,
    sum(chance) AS expected,
    sqrt(sum(chance * (1 - chance))) AS sigma,
    (count(*) FILTER (drawn) - sum(chance)) / nullif(sqrt(sum(chance * (1 - chance))), 0) AS deviation,
    max(time) FILTER (drawn) AS last_drawn
FROM picks
GROUP BY owner
ORDER BY counted(owner), owner;

-- @lead
WITH sums AS (
    SELECT sum(drawn) AS drawn, count(*) AS owners, arg_max(owner, abs(deviation)) AS farthest,
        max(abs(deviation)) AS far
    FROM report
)
SELECT CASE
    WHEN coalesce(drawn, 0) = 0 THEN 'Nobody was drawn in this period.'
    ELSE counted_as(drawn, 'run') || CASE WHEN drawn = 1 THEN ' was' ELSE ' were' END || ' drawn, of '
        || counted_as(owners, 'owner') || CASE WHEN owners = 1 THEN ' that was' ELSE ' that were' END || ' in pools'
        || CASE
            WHEN far IS NULL THEN ', each alone in its pool.'
            ELSE '; ' || farthest || ' lies farthest from what is expected, ' || format('{:.1f}', far)
                || ' standard deviations.'
        END
END
FROM sums;

-- @figures
SELECT 'Drawn' AS label, counted_as(sum(drawn), 'run') AS value,
    change(sum(drawn), (SELECT sum(b.drawn) FROM before AS b)) AS note
FROM report HAVING count(*) > 0
UNION ALL
SELECT 'Farthest from fair', format('{:.1f}', max(abs(deviation))) || ' std dev', arg_max(owner, abs(deviation))
FROM report HAVING max(abs(deviation)) IS NOT NULL;

-- @chart across: Runs drawn, by owner; the line: what a fair draw takes
SELECT owner AS label, drawn AS y, 'drawn' AS series, expected AS mark
FROM report
ORDER BY y DESC, label;

-- @table sum=Drawn, Expected
SELECT
    owner AS "Owner",
    picks AS "Picks",
    tokens AS "Groups in pools",
    drawn AS "Drawn",
    expected AS "Expected",
    sigma AS "Std dev",
    deviation AS "Off by (std dev)",
    moment(last_drawn) AS "Last drawn"
FROM report
