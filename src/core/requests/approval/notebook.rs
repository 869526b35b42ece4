//! The cell of a notebook that a call replaces or deletes.

use serde_json::Value;

/// The tool that changes cells.
pub(crate) const NOTEBOOK_EDIT: &str = "NotebookEdit";

/// The notebook with the cell that goes, and what the call says about that cell; `None`: no cell goes.
pub(crate) fn changed_notebook<'a>(tool: &str, input: &'a Value) -> Option<&'a str> {
    let goes = tool == NOTEBOOK_EDIT && input["edit_mode"] != "insert";
    goes.then(|| input["notebook_path"].as_str()).flatten()
}

/// The source of a cell. A notebook of an older format has no ids: then the cell is named by its number, as `cell-0`.
///
/// The error says why it is not known, in words that follow "a cell that".
pub(crate) fn source(notebook: &str, cell: &Value) -> Result<String, String> {
    let notebook: Value = serde_json::from_str(notebook).map_err(|_| "cannot be shown: the notebook is not JSON")?;
    let cells = notebook["cells"].as_array().ok_or("cannot be shown: the notebook has no cells")?;
    let cell = cell.as_str().ok_or("the call does not name")?;
    let number = || cells.get(cell.strip_prefix("cell-")?.parse::<usize>().ok()?);
    let found = cells.iter().find(|found| found["id"] == cell).or_else(number).ok_or("the notebook does not have")?;
    match &found["source"] {
        Value::String(text) => Ok(text.clone()),
        Value::Array(lines) => Ok(lines.iter().filter_map(Value::as_str).collect()),
        _ => Err("has no source".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_cell_is_found_by_its_id_or_number() {
        let cells = json!([{"id": "a", "source": ["one\n", "two"]}, {"source": "three"}, {"source": 7}]);
        let notebook = json!({"cells": cells}).to_string();
        let source = |cell: Value| source(&notebook, &cell);
        assert_eq!(source(json!("a")).unwrap(), "one\ntwo");
        assert_eq!(source(json!("cell-0")).unwrap(), "one\ntwo");
        assert_eq!(source(json!("cell-1")).unwrap(), "three");
        for cell in [json!("cell-2"), json!("cell-9"), json!("b"), json!(0), Value::Null] {
            assert!(source(cell.clone()).is_err(), "{cell}");
        }
        for notebook in ["", "[]", "{\"cells\": 7}"] {
            assert!(super::source(notebook, &json!("a")).is_err(), "{notebook}");
        }
    }

    #[test]
    fn a_cell_goes_unless_one_is_inserted() {
        let of = |mode: Value| {
            let input = json!({"notebook_path": "/n.ipynb", "edit_mode": mode});
            changed_notebook(NOTEBOOK_EDIT, &input).map(str::to_owned)
        };
        assert_eq!(of(json!("insert")), None);
        for mode in [json!("delete"), json!("replace"), Value::Null, json!("odd")] {
            assert_eq!(of(mode).as_deref(), Some("/n.ipynb"));
        }
        assert_eq!(changed_notebook("Write", &json!({"notebook_path": "/n.ipynb"})), None);
    }
}
