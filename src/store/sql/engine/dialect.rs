//! Translates statements for PostgreSQL. They are written for SQLite, and only a few words differ.

/// Translates a statement for PostgreSQL.
pub(crate) fn postgres(sql: &str) -> String {
    let mut words = String::with_capacity(sql.len());
    let mut rest = sql;
    while let Some((before, after)) = next_special(rest) {
        words.push_str(before);
        rest = after;
        if let Some(number) = rest.strip_prefix('?') {
            words.push('$');
            rest = number;
        } else if let Some(name) = rest.strip_prefix("INDEXED BY ") {
            // PostgreSQL's planner has statistics and needs no hints.
            rest = name.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
        } else if let Some(after) = rest.strip_prefix("NOT INDEXED ") {
            rest = after;
        } else if let Some(after) = rest.strip_prefix("CROSS JOIN ") {
            // In SQLite, this fixes the order of a join.
            words.push_str("JOIN ");
            rest = after;
        } else if let Some(after) = rest.strip_prefix(" LIKE ") {
            // SQLite ignores the case of ASCII letters.
            words.push_str(" ILIKE ");
            rest = after;
        } else if let Some(after) = rest.strip_prefix(" +") {
            // In SQLite, the sign prevents the use of an index on the column.
            words.push_str(if after.starts_with(char::is_alphabetic) { " " } else { " +" });
            rest = after;
        } else if let Some(after) = rest.strip_prefix("VALUES (?1) UNION") {
            words.push_str("SELECT $1::text COLLATE \"C\" UNION");
            rest = after;
        }
    }
    words.push_str(rest);
    words
}

/// Splits a statement before the next word that differs.
fn next_special(sql: &str) -> Option<(&str, &str)> {
    const WORDS: [&str; 7] = [" +", "VALUES (?1) UNION", "NOT INDEXED ", "INDEXED BY ", "CROSS JOIN ", " LIKE ", "?"];
    let at = WORDS.iter().filter_map(|word| sql.find(word)).min()?;
    Some(sql.split_at(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_differ_are_replaced_and_nothing_else() {
        for (written, meant) in [
            ("SELECT a FROM t WHERE b = ?1 AND c = ?12", "SELECT a FROM t WHERE b = $1 AND c = $12"),
            ("SELECT a FROM t INDEXED BY t_by_a WHERE a", "SELECT a FROM t  WHERE a"),
            ("SELECT a FROM t NOT INDEXED WHERE a LIKE ?1", "SELECT a FROM t WHERE a ILIKE $1"),
            (
                "WITH below (id) AS (VALUES (?1) UNION SELECT 1)",
                "WITH below (id) AS (SELECT $1::text COLLATE \"C\" UNION SELECT 1)",
            ),
            ("a WHERE +r.frame = b + ?3", "a WHERE r.frame = b + $3"),
            ("a AS b CROSS JOIN c AS d ON d.e = b.e", "a AS b JOIN c AS d ON d.e = b.e"),
            ("INSERT INTO t VALUES (?1, ?2)", "INSERT INTO t VALUES ($1, $2)"),
        ] {
            assert_eq!(postgres(written), meant);
        }
    }
}
