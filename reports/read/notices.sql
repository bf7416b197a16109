-- What is odd in a lake, (place, kind, name, message): each is named in every report on it, since a figure may stand on it.
SELECT 1 AS place, 'The lake' AS kind, 'between ' || iso(arg_max(time, days)) || ' and ' || iso(arg_max(following, days))
    || CASE WHEN count(*) > 1 THEN ', and at ' || many(count(*) - 1, 'other time') ELSE '' END AS name,
    'it has no cycle for ' || many(sum(days)::BIGINT, 'whole day') || CASE WHEN count(*) > 1 THEN ' in all' ELSE '' END
    || ': leases say what they cost then, the rest is taken as the cycle before saw it' AS message
FROM (
    SELECT time, following,  -- whole days between the two that lie in the period
        least(following, getvariable('until')) // 86400
        - greatest(time // 86400 + 1, (getvariable('since') + 86399) // 86400) AS days
    FROM (SELECT time, lead(time) OVER (ORDER BY time) AS following FROM cycles)
)
WHERE days > 0
HAVING count(*) > 0

UNION ALL
SELECT 2, 'Lease', namespace || '/' || name,
    'it was open at ' || iso(seen) || ' and is in no later cycle: it counts until then'
FROM leases
WHERE NOT closed AND seen < (SELECT max(seen) FROM leases) AND seen > getvariable('since')

UNION ALL
SELECT DISTINCT 3, 'Lease', l.namespace || '/' || l.name,
    'the cycle of ' || iso(l.seen) || ' saw it closed, that of ' || iso(o.seen)
    || ' open: two clocks disagree, and it counts as closed'
FROM leases AS l
JOIN lease_forms AS o ON o.namespace = l.namespace AND o.name = l.name
WHERE l.closed AND NOT o.closed AND o.seen > l.seen

UNION ALL
SELECT 4, 'Lease', namespace || '/' || name,
    'its ledger begins a segment at ' || iso(list_max([each['from'] FOR each IN funding])) || ', after the cycle of '
    || iso(seen) || ' that saw it: two clocks disagree'
FROM leases
WHERE list_max([each['from'] FOR each IN funding]) > seen

UNION ALL
SELECT 5, 'Envelope', l.budget || '/' || l.envelope,
    'of ' || l.owner || ' for ' || l.flavor || ' it is in no cycle of the period, and pays for '
    || many(count(DISTINCT (l.namespace, l.lease)), 'lease') || ': its charges stay with ' || l.owner || ', as the leases say'
FROM segments AS l
ANTI JOIN (
    SELECT e.budget, e.name, e.flavor, b.owner
    FROM envelopes_history AS e
    JOIN budgets_history AS b
        ON b.name = e.budget AND b.since < coalesce(e.until, b.since + 1) AND e.since < coalesce(b.until, e.since + 1)
) AS e ON e.budget = l.budget AND e.name = l.envelope AND e.owner = l.owner AND e.flavor = l.flavor
WHERE l.budget IS NOT NULL
GROUP BY l.budget, l.envelope, l.owner, l.flavor

UNION ALL
SELECT DISTINCT ON (kind, namespace, name) 6, kind, CASE WHEN namespace = '' THEN name ELSE namespace || '/' || name END,
    'it was set aside by the cycle of ' || iso(since) || ', and counted for nothing then: ' || message
FROM quarantine_history
WHERE kind IN ('Lease', 'Budget', 'Node') AND since <= getvariable('until') AND coalesce(until > getvariable('since'), TRUE)

ORDER BY place, kind, counted(name), name, message
