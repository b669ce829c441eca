-- The store is one SQLite file per study and holds everything that a report shows. This is schema version 4. Versions 2
-- and 3 lack the last three columns of question and verdict and the table question_cell, and a question always has a
-- predicted value. In version 2 the numbers of metrics were positions in the program's table of metrics. Readers reject
-- any other version, and any statement that differs from these in more than comments.
CREATE TABLE study(            -- exactly one row
  id INTEGER PRIMARY KEY CHECK(id = 1),
  name TEXT NOT NULL, title TEXT NOT NULL,
  kind TEXT NOT NULL,                 -- spiked | counts | kv_like | matrix | kv_dump | kv_model | claims
  config_source TEXT NOT NULL,        -- text of the study file, or the command line
  config_resolved TEXT NOT NULL,      -- canonical JSON of all settings that can change a number, after defaults and --set
  science_hash TEXT NOT NULL,         -- sha256 of config_resolved
  seed TEXT NOT NULL, seed_source TEXT NOT NULL CHECK(seed_source IN ('config','cli','generated')),
  false_alarm REAL NOT NULL,          -- declared for all checks of the store jointly
  backend TEXT NOT NULL,
  status TEXT NOT NULL                -- incomplete: merged with parts missing; shard i/k: complete for this shard, others may be missing
    CHECK(status IN ('running','complete','stopped','failed','incomplete') OR status LIKE 'shard %'),
  created_utc TEXT NOT NULL,
  batch_reps INTEGER NOT NULL,        -- replicates per batch; the last batch of a cell may have fewer
  config_set TEXT NOT NULL DEFAULT '[]', -- JSON list of [key, value] for the keys of config_source that --set changed
  failure_budget REAL NOT NULL);      -- fraction of a cell's replicates that may fail; the value of the latest run
CREATE TABLE session(          -- one row per process start; resuming adds a row
  session_id INTEGER PRIMARY KEY, started_utc TEXT NOT NULL, ended_utc TEXT, exit_code INTEGER, stop_reason TEXT,
  argv TEXT NOT NULL, host TEXT, pid INTEGER, threads INTEGER, device TEXT, provenance TEXT NOT NULL);
CREATE TABLE input(
  input_id INTEGER PRIMARY KEY, path TEXT NOT NULL, bytes INTEGER NOT NULL, sha256 TEXT NOT NULL, format TEXT NOT NULL,
  layout TEXT NOT NULL, model TEXT NOT NULL, meta TEXT NOT NULL);
CREATE TABLE cell(             -- a design point of the study; for a dump: a file, layer, side and head; for claims: a criterion at a size
  cell_id INTEGER PRIMARY KEY, cell_hash TEXT NOT NULL UNIQUE, label TEXT NOT NULL,
  n INTEGER NOT NULL, d INTEGER NOT NULL, params TEXT NOT NULL,
  reps_least INTEGER NOT NULL,        -- replicates before the first check of the rules of table stop_rule
  reps_target INTEGER NOT NULL,       -- most replicates
  state TEXT NOT NULL CHECK(state IN ('todo','done')),
  why TEXT CHECK(why IN ('met','max','absent')));  -- the reason: every stop rule is met | all replicates were run | no rule's metric is measured in this cell
CREATE TABLE stop_rule(        -- a cell continues until the standard error of every mean of the metric is within these bounds
  rule_id INTEGER PRIMARY KEY, metric_id INTEGER NOT NULL REFERENCES metric,
  relative REAL NOT NULL, absolute REAL NOT NULL); -- bounds: a fraction of the mean; in the metric's unit; 0 means that the bound is not used
CREATE TABLE factor(           -- values that cells differ in: sweep keys; or file, model, prompt, layer, side, head, cluster
  cell_id INTEGER NOT NULL REFERENCES cell, name TEXT NOT NULL, num REAL, txt TEXT NOT NULL,
  PRIMARY KEY(cell_id, name)) WITHOUT ROWID;
CREATE TABLE method(           -- an estimator, or a codec at one bit width; 'sample' is for quantities of the sample itself
  method_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL CHECK(kind IN ('sample','estimator','codec')),
  base TEXT NOT NULL,                 -- the name without bits, as written in the study, or its label
  bits INTEGER, params TEXT NOT NULL); -- params: JSON with loss, budget and, if the study gives a label, the method
CREATE TABLE metric(metric_id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, unit TEXT NOT NULL, -- the name identifies a metric; the number is this store's
  better TEXT NOT NULL CHECK(better IN ('lower','higher','target','none')), definition TEXT NOT NULL);
CREATE TABLE batch(            -- the unit of commit and of resume
  cell_id INTEGER NOT NULL REFERENCES cell, batch INTEGER NOT NULL, rep_first INTEGER NOT NULL, reps INTEGER NOT NULL,
  failed INTEGER NOT NULL, session_id INTEGER NOT NULL REFERENCES session, wall_s REAL, digest TEXT NOT NULL,
  PRIMARY KEY(cell_id, batch)) WITHOUT ROWID;
CREATE TABLE value(            -- single draws, as many as the key raw of [store] allows; NULL: failed or undefined
  cell_id INTEGER NOT NULL, rep INTEGER NOT NULL, method_id INTEGER NOT NULL, metric_id INTEGER NOT NULL,
  k INTEGER NOT NULL DEFAULT 0, v REAL, PRIMARY KEY(cell_id, method_id, metric_id, k, rep)) WITHOUT ROWID;
CREATE TABLE moment(           -- mergeable moments of each batch, always stored
  cell_id INTEGER NOT NULL, batch INTEGER NOT NULL, method_id INTEGER NOT NULL, metric_id INTEGER NOT NULL,
  k INTEGER NOT NULL DEFAULT 0, n INTEGER NOT NULL, n_null INTEGER NOT NULL,
  mean REAL, m2 REAL, m3 REAL, m4 REAL, lo REAL, hi REAL,
  PRIMARY KEY(cell_id, method_id, metric_id, k, batch)) WITHOUT ROWID;
CREATE TABLE failure(cell_id INTEGER NOT NULL, rep INTEGER NOT NULL, method_id INTEGER, stage TEXT NOT NULL,
  code TEXT NOT NULL, message TEXT NOT NULL,
  replay TEXT NOT NULL);               -- replay: the command that computes the replicate again; STORE stands for the name of this file
CREATE TABLE array(            -- .npy bytes of replicate `rep` of a cell: block, signal, residual, singular_values, noise_eigenvalues
  cell_id INTEGER NOT NULL, rep INTEGER NOT NULL, method_id INTEGER NOT NULL, name TEXT NOT NULL, npy BLOB NOT NULL,
  PRIMARY KEY(cell_id, rep, method_id, name)) WITHOUT ROWID;
CREATE TABLE theory(           -- predictions of the theory for a cell; quantity: name of the predicted metric
  cell_id INTEGER NOT NULL, quantity TEXT NOT NULL, k INTEGER NOT NULL DEFAULT 0, value REAL NOT NULL,
  num_err REAL NOT NULL, source TEXT NOT NULL, PRIMARY KEY(cell_id, quantity, k)) WITHOUT ROWID;
CREATE TABLE claim(id TEXT PRIMARY KEY, place TEXT NOT NULL, statement TEXT NOT NULL, control TEXT NOT NULL);
CREATE TABLE question(         -- comparisons to be judged, written from the study before any results exist
  question_id INTEGER PRIMARY KEY, check_name TEXT NOT NULL, claim TEXT NOT NULL REFERENCES claim(id),
  cell_id INTEGER NOT NULL REFERENCES cell, method_id INTEGER NOT NULL REFERENCES method,
  metric_id INTEGER NOT NULL REFERENCES metric, k INTEGER NOT NULL,
  expected REAL,                      -- the predicted number; NULL: the claim states a region only
  margin REAL NOT NULL,               -- half the width of the region; 0 where that has one end
  control_expected REAL NOT NULL,     -- the prediction with the claim's planted defect (the negative control)
  allowed_lo REAL NOT NULL, allowed_hi REAL NOT NULL,   -- the region in which the number must lie; infinite: no limit on that side
  exponent_of TEXT);                  -- NULL: the number is the mean in the cell; otherwise it is the exponent a with which the mean changes as this factor to the power of a, over the cells of question_cell
CREATE TABLE question_cell(    -- the cells over which an exponent is fitted; cell_id of question is the largest
  question_id INTEGER NOT NULL REFERENCES question, cell_id INTEGER NOT NULL REFERENCES cell,
  size REAL NOT NULL,                 -- the value of the factor
  PRIMARY KEY(question_id, cell_id)) WITHOUT ROWID;
CREATE TABLE verdict(          -- one row per question; a check whose negative control passes counts as failed
  verdict_id INTEGER PRIMARY KEY, check_name TEXT NOT NULL, claim TEXT NOT NULL REFERENCES claim(id),
  cell_id INTEGER NOT NULL, method_id INTEGER NOT NULL, metric TEXT NOT NULL, k INTEGER NOT NULL,
  estimate REAL, mcse REAL, expected REAL, margin REAL NOT NULL, lo REAL, hi REAL,
  alpha REAL NOT NULL,                -- the part of the false-alarm rate that this interval gets
  detectable REAL,                    -- smallest deviation that would fail with probability 0.99
  n INTEGER NOT NULL, needed INTEGER, -- needed: replicates that would decide an inconclusive verdict
  verdict TEXT NOT NULL CHECK(verdict IN ('pass','fail','inconclusive')),
  control_expected REAL NOT NULL,
  control_verdict TEXT NOT NULL CHECK(control_verdict IN ('pass','fail','inconclusive')), -- on the interval, moved to control_expected
  reason TEXT NOT NULL, allowed_lo REAL NOT NULL, allowed_hi REAL NOT NULL, exponent_of TEXT);
CREATE TABLE figure(figure_id INTEGER PRIMARY KEY, kind TEXT NOT NULL, spec TEXT NOT NULL);  -- spec: the study's [[figure]] table as JSON
CREATE TABLE event(t_utc TEXT NOT NULL, session_id INTEGER, level TEXT, code TEXT, message TEXT);

CREATE VIEW v_summary AS       -- pooled over batches by Chan's formula; mcse of the mean; failed: replicates without a value
WITH s AS (SELECT cell_id, method_id, metric_id, k, SUM(n) n, SUM(n*mean)/SUM(n) mean, MIN(lo) lo, MAX(hi) hi
           FROM moment GROUP BY 1,2,3,4),
     r AS (SELECT cell_id, SUM(reps) reps FROM batch GROUP BY 1)
SELECT c.label AS cell, me.name AS method, mt.name AS metric, s.k, s.n, r.reps - s.n AS failed, s.mean,
       CASE WHEN s.n>1 THEN sqrt((SELECT SUM(m.m2 + m.n*(m.mean-s.mean)*(m.mean-s.mean)) FROM moment m
          WHERE m.n>0 AND m.cell_id=s.cell_id AND m.method_id=s.method_id AND m.metric_id=s.metric_id AND m.k=s.k)/(s.n-1.0)) END AS sd,
       CASE WHEN s.n>1 THEN sqrt((SELECT SUM(m.m2 + m.n*(m.mean-s.mean)*(m.mean-s.mean)) FROM moment m
          WHERE m.n>0 AND m.cell_id=s.cell_id AND m.method_id=s.method_id AND m.metric_id=s.metric_id AND m.k=s.k)/(s.n-1.0)/s.n) END AS mcse,
       s.lo, s.hi, s.cell_id, s.method_id, s.metric_id
FROM s JOIN r USING(cell_id) JOIN cell c USING(cell_id) JOIN method me USING(method_id) JOIN metric mt USING(metric_id);
CREATE VIEW v_value AS
SELECT c.label AS cell, c.n, c.d, v.rep, me.name AS method, mt.name AS metric, v.k, v.v AS value
FROM value v JOIN cell c USING(cell_id) JOIN method me USING(method_id) JOIN metric mt USING(metric_id);
CREATE VIEW ledger AS          -- stored bits by item, from the metrics named bits.ITEM
SELECT m.cell_id, m.method_id, substr(mt.name, 6) AS item, SUM(m.n*m.mean)/SUM(m.n) AS bits_per_entry, SUM(m.n) AS blocks
FROM moment m JOIN metric mt USING(metric_id) WHERE mt.name LIKE 'bits.%' AND m.n > 0 GROUP BY 1,2,3;
CREATE VIEW v_bits AS
SELECT c.label AS cell, m.name AS method, SUM(bits_per_entry) AS bits_total,
  group_concat(item || '=' || printf('%.4f', bits_per_entry), ' ') AS items
FROM ledger l JOIN cell c USING(cell_id) JOIN method m USING(method_id) WHERE bits_per_entry > 0 GROUP BY l.cell_id, l.method_id;
CREATE VIEW v_cluster AS       -- dump studies: means over blocks with errors clustered by the cells' factor 'cluster', without the correction for clusters of unequal size (CR2) that tables of the program have
WITH g AS (SELECT side.txt AS side, m.method_id, m.metric_id, cl.txt AS cluster, SUM(m.n) AS n, SUM(m.n*m.mean) AS s
           FROM moment m JOIN factor side ON side.cell_id=m.cell_id AND side.name='side'
                         JOIN factor cl ON cl.cell_id=m.cell_id AND cl.name='cluster'
           WHERE m.n > 0 GROUP BY 1,2,3,4),
     t AS (SELECT side, method_id, metric_id, SUM(n) AS n, SUM(s)/SUM(n) AS mean, COUNT(*) AS clusters FROM g GROUP BY 1,2,3)
SELECT t.side, me.base AS method, me.bits, mt.name AS metric, t.n AS blocks, t.clusters, t.mean,
       CASE WHEN t.clusters > 1 THEN sqrt(t.clusters/(t.clusters-1.0) * (SELECT SUM((g.s - g.n*t.mean)*(g.s - g.n*t.mean)) FROM g
          WHERE g.side=t.side AND g.method_id=t.method_id AND g.metric_id=t.metric_id)) / t.n END AS mcse,
       t.method_id, t.metric_id
FROM t JOIN method me USING(method_id) JOIN metric mt USING(metric_id);
