use toml::{Table, Value};

/// Puts what `other` says in the place of what `table` said.
pub(super) fn merge(table: &mut Table, other: &Table) {
    for (key, value) in other {
        match table.get_mut(key) {
            Some(old) => merge_value(old, value),
            None => {
                table.insert(key.clone(), value.clone());
            }
        }
    }
}

fn merge_value(old: &mut Value, new: &Value) {
    match (old, new) {
        (Value::Table(old), Value::Table(new)) => merge(old, new),
        (Value::Array(old), Value::Array(new))
            if all_tables(old) && all_tables(new) && old.len() == new.len() =>
        {
            old.iter_mut().zip(new).for_each(|(old, new)| merge_value(old, new));
        }
        (old, new) => *old = new.clone(),
    }
}

fn all_tables(values: &[Value]) -> bool {
    values.iter().all(Value::is_table)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(text: &str, other: &str) -> Table {
        let mut table: Table = text.parse().unwrap();
        merge(&mut table, &other.parse().unwrap());
        table
    }

    #[test]
    fn tables_are_merged_field_by_field_and_everything_else_is_replaced() {
        let table = merged(
            "a = 1\nb = { c = 2, d = [1, 2] }\ne = [{ f = 1 }, { g = 2 }]\nh = [{ i = 1 }]",
            "a = 5\nb = { d = [3], x = 4 }\ne = [{ f = 7 }, { y = 8 }]\nh = [{ i = 2 }, { i = 3 }]",
        );
        let expected: Table =
            "a = 5\nb = { c = 2, d = [3], x = 4 }\ne = [{ f = 7 }, { g = 2, y = 8 }]\nh = [{ i = 2 }, { i = 3 }]"
                .parse()
                .unwrap();
        assert_eq!(table, expected);
    }
}
