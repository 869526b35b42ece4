//! A frame and all frames below it, in SQL.

/// `below`: the ids of a frame and of all below it. `UNION` terminates the recursion even if a damaged tree has a cycle.
macro_rules! below {
    ($query:literal) => {
        concat!(
            "WITH RECURSIVE below (id) AS (VALUES (?1) UNION
               SELECT child.id FROM below CROSS JOIN frames AS child ON child.parent = below.id) ",
            $query
        )
    };
}
pub(crate) use below;
