-- The site's own posts, as far as citeflow reads them: published ones are offered as internal
-- links. A site that has such a table already only needs these columns; citeflow never writes.
CREATE TABLE IF NOT EXISTS posts (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    title        text NOT NULL,
    slug         text NOT NULL UNIQUE,
    status       text NOT NULL DEFAULT 'draft',
    published_at timestamptz
);

-- Only published posts are read, newest first.
CREATE INDEX IF NOT EXISTS posts_published ON posts (published_at DESC) WHERE status = 'published';
