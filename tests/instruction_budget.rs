//! The committed budget of instructions, and the program that it is for.

#[path = "../benches/instructions/operations.rs"]
mod operations;

const BUDGET: &str = include_str!("../benches/instructions.txt");

#[test]
fn the_budget_lists_every_operation_that_is_counted_and_no_other() {
    let budgeted: Vec<&str> = BUDGET
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once('\t').expect("a number, a tab and a name").1)
        .collect();
    let counted: Vec<String> = operations::operations().into_iter().map(|operation| operation.name).collect();
    assert_eq!(budgeted, counted, "`benches/instructions.sh --write` writes it anew");
}

#[test]
fn every_operation_that_is_counted_can_be_done_again_and_again() {
    for mut operation in operations::operations() {
        (0..10).for_each(|_| (operation.once)());
    }
}
