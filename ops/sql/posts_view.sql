-- An example for a site that has posts in a table of its own: a view with the columns that citeflow
-- reads. Adapt the names, then `citeflow settings set internal_links_table citeflow.posts`.
CREATE SCHEMA IF NOT EXISTS citeflow;

CREATE OR REPLACE VIEW citeflow.posts AS
SELECT headline                                             AS title,
       url_path                                             AS slug,
       CASE WHEN live THEN 'published' ELSE 'draft' END     AS status,
       went_live_at                                         AS published_at
FROM blog_entries;
