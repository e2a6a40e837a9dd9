//! Which files a shell command changes.

use std::path::Path;

use proptest::prelude::*;

use super::super::{Edits, TOUCHES_MAX, shell};
use super::shown;

fn edits(command: &str, folder: &str) -> Edits {
    let mut found = Edits::default();
    shell::read(command, Path::new(folder), &mut found);
    found
}

fn check(cases: &[(&str, &str)]) {
    let wrong = cases.iter().filter_map(|(command, expected)| {
        let found = shown(&edits(command, ""));
        (found != *expected).then(|| format!("{command}\n  expected {expected}\n  found    {found}"))
    });
    let wrong = wrong.collect::<Vec<_>>();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn redirections_write_their_files() {
    check(&[
        ("echo x > a.txt", "W a.txt"),
        ("echo x >> a.txt", "W a.txt"),
        ("echo x >a.txt", "W a.txt"),
        ("echo x >| a.txt", "W a.txt"),
        ("> a.txt", "W a.txt"),
        (">a echo x", "W a"),
        ("make 2> err.log", "W err.log"),
        ("make 2>err.log 1>>out.log", "W err.log, W out.log"),
        ("make &> all.log", "W all.log"),
        ("make &>>all.log", "W all.log"),
        ("make >& all.log", "W all.log"),
        ("make > out 2>&1", "W out"),
        ("make 2>&1 >out", "W out"),
        ("make >&2", ""),
        ("make 2>&-", ""),
        ("make 2>/dev/null >/dev/stdout", ""),
        ("make > /dev/stderr < /dev/tty", ""),
        ("echo 2 > n", "W n"),
        ("echo a->b", "W b"),
        ("cat < in", ""),
        ("cat < in > out", "W out"),
        ("cat <<< '> x' > out", "W out"),
        ("cat <<< x\necho > out", "W out"),
        ("exec 3<&0 3> f", "W f"),
        ("echo x > 'a b.txt'", "W a b.txt"),
        ("echo x > \"a b.txt\"", "W a b.txt"),
        ("echo x > a\\ b.txt", "W a b.txt"),
        ("echo x > a\"b\"'c'd", "W abcd"),
        ("echo x > \"a\\\"b\\c\"", "W a\"b\\c"),
        ("echo x > '*.txt'", "W *.txt"),
        ("echo x > *.txt", "W* *.txt"),
        ("echo x > ./d//../a", "W ./d//../a"),
        ("echo x > /abs/a", "W /abs/a"),
        ("echo x \\\n  > a", "W a"),
        ("echo x > a # > b", "W a"),
        ("echo x#> a", "W a"),
    ]);
}

#[test]
fn what_is_no_redirection_writes_nothing() {
    check(&[
        ("", ""),
        ("ls -la", ""),
        ("echo '>' x", ""),
        ("echo \">\" x", ""),
        ("echo \\> x", ""),
        ("grep -r \">\" .", ""),
        ("awk '$1 > 3 { print > \"f\" }' in", ""),
        ("python -c \"open('x','w')\"", ""),
        ("# echo > x", ""),
        ("[[ a > b && c < d ]] && echo y", ""),
        ("[[ a > b ]] && echo y > f", "W f"),
        ("((a > b)) && echo y > f", "W f"),
        ("echo $((a > b))", ""),
        ("echo x > $F", ""),
        ("echo x > \"$F\"", ""),
        ("echo x > \"d/$F.txt\"", ""),
        ("echo x > d/`name`.txt", ""),
        ("echo x > $(name).txt", ""),
        ("echo x > ~/a.txt", ""),
        ("echo x > 'a", ""),
        ("echo x > \"a", ""),
        ("echo \"unfinished > a\n> b", ""),
        ("echo x >", ""),
        ("echo x > ; ls", ""),
        ("diff <(sort a) <(sort b)", ""),
        ("bash -c 'rm a'", ""),
        ("find . -name '*.o' -delete", ""),
        ("ls | xargs rm", ""),
        ("touch a", ""),
    ]);
}

#[test]
fn file_commands_change_their_operands() {
    check(&[
        ("ls | tee a.txt", "W a.txt"),
        ("ls | tee -a a.txt b.txt > /dev/null", "W a.txt, W b.txt"),
        ("rm a b", "D a, D b"),
        ("rm -rf d/", "D d/"),
        ("rm -- -f", "D -f"),
        ("rm -f", ""),
        ("rm a 2>/dev/null", "D a"),
        ("rm a\\\nb", "D ab"),
        ("rm \"a*.rs\"", "D a*.rs"),
        ("rm *.rs", "D* *.rs"),
        ("rm src/{a,b}.rs", "D* src/{a,b}.rs"),
        ("rm a?.[ch]", "D* a?.[ch]"),
        ("rm 'a[1].rs' \"$X\" b", "D a[1].rs, D b"),
        ("mv a b", "F a, T b, T b/a"),
        ("mv a d/", "F a, T d/a"),
        ("mv a .", "F a, T ./a"),
        ("mv x/a ..", "F x/a, T ../a"),
        ("mv -f a x/b d", "F a, F x/b, T d/a, T d/b"),
        ("mv -t d a b", "F a, F b, T d/a, T d/b"),
        ("mv -td a", "F a, T d/a"),
        ("mv --target-directory=d a", "F a, T d/a"),
        ("mv --target-directory d a", "F a, T d/a"),
        ("mv -S .bak a d/", "F a, T d/a"),
        ("mv *.rs d", "F* *.rs, T d, T* d/*.rs"),
        ("mv a \"$D\"", "F a"),
        ("mv \"$A\" b", "T b"),
        ("mv a", ""),
        ("cp a b", "T b, T b/a"),
        ("cp -p a ../b/", "T ../b/a"),
        ("cp -r src/. dst", "T dst, T dst/."),
        ("cp -r src dst", "T dst, T dst/src"),
        ("cp -a x/src/ dst/", "T dst/src"),
        ("cp a b c d", "T d/a, T d/b, T d/c"),
        ("cp \"$A\" b/", ""),
        ("/bin/rm a", "D a"),
        ("\\rm a", "D a"),
    ]);
}

#[test]
fn only_sed_in_place_writes_files() {
    check(&[
        ("sed 's/a/b/' f", ""),
        ("sed -n '1,5p' f", ""),
        ("sed -i 's/a/b/' f", "W f"),
        ("sed -i s/base/x/ a.txt", "W a.txt"),
        ("sed -i.bak 's/a/b/' f g", "W f, W g"),
        ("sed -i.old 's/a/b/' f", "W f"),
        ("sed -i.ext 's/a/b/' f", "W f"),
        ("sed -i '' 's/a/b/' f", "W f"),
        ("sed -i -e 's/a/b/' -e 's/c/d/' f", "W f"),
        ("sed -i -es/a/b/ f", "W f"),
        ("sed -ni -f script f", "W f"),
        ("sed -Ei 's/(a)/b/' f", "W f"),
        ("sed -E -i 's/(a)/b/' src/*.rs", "W* src/*.rs"),
        ("sed --in-place=.bak --expression='s/a/b/' f", "W f"),
        ("sed --in-place --expression s/a/b/ f", "W f"),
        ("sed 's/a/b/' f -i", "W f"),
        ("sed -i \"s/$A/$B/\" f", "W f"),
        ("sed -i s/[a-z]*/x/ f", "W f"),
        ("sed -i 's/a/b/'", ""),
        ("sed -i", ""),
        ("sed 's/a/b/' f > g", "W g"),
    ]);
}

#[test]
fn git_changes_the_work_tree() {
    check(&[
        ("git mv a b", "F a, T b, T b/a"),
        ("git mv -k a b d/", "F a, F b, T d/a, T d/b"),
        ("git rm a b", "D a, D b"),
        ("git rm -r --cached d", ""),
        ("git rm -n d", ""),
        ("git rm src/*.c", "D* src/*.c"),
        ("git checkout main", ""),
        ("git checkout feature", ""),
        ("git checkout -b new.name", ""),
        ("git checkout --orphan new.name", ""),
        ("git checkout -", ""),
        ("git checkout a.rs", "W a.rs"),
        ("git checkout .", "W ."),
        ("git checkout -f src/", "W src/"),
        ("git checkout -- a b", "W a, W b"),
        ("git checkout HEAD~1 -- a", "W a"),
        ("git checkout main a b", "W a, W b"),
        ("git checkout --", ""),
        ("git restore a b", "W a, W b"),
        ("git restore -s HEAD~1 a", "W a"),
        ("git restore --source=HEAD~1 --staged --worktree a", "W a"),
        ("git restore --source HEAD~1 a", "W a"),
        ("git restore --staged a", ""),
        ("git restore -S a", ""),
        ("git commit -m 'x > y; rm z'", "C "),
        ("git add -A && git commit -qam x", "C "),
        ("git -C sub commit", ""),
        ("git -c a.b=c rm f", ""),
        ("git --git-dir=x commit", ""),
        ("git --work-tree=x rm f", ""),
        ("git status > s", "W s"),
        ("git push; git stash; git reset --hard", ""),
        ("git", ""),
    ]);
}

#[test]
fn commands_are_found_in_lists_groups_and_after_prefixes() {
    check(&[
        ("ls; rm a && mv b c/ || cp d e/ | tee f & rm g\nrm h", "D a, F b, T c/b, T e/d, W f, D g, D h"),
        ("(rm a; (rm b)); { rm c; rm d; } > e", "D a, D b, D c, D d, W e"),
        ("if [ -f a ]; then rm a; else rm b; fi", "D a, D b"),
        ("for f in x; do rm a; done > out", "D a, W out"),
        ("while ! rm a; do rm b; done", "D a, D b"),
        ("case $x in y) rm a ;; *) rm b;; esac", "D a, D b"),
        ("A=b C=\"$d\" rm a", "D a"),
        ("A=$(cat b) rm a", "D a"),
        ("A=b", ""),
        ("sudo rm a", "D a"),
        ("sudo -n env -i A=b command rm a", "D a"),
        ("time -p rm a", "D a"),
        ("command -v rm mv", ""),
        ("\"$RM\" a; $RM b", ""),
        ("echo rm a", ""),
        ("x=$(rm a)", "D a"),
        ("echo \"$(rm a; echo \"$(rm b)\")\" > c", "D a, D b, W c"),
        ("ls > >(tee a)", "W a"),
        ("echo $'it\\'s > x' > a", "W a"),
        ("echo ${a:-b} > c", "W c"),
        ("rm a\r\nrm b\r\n", "D a, D b"),
    ]);
}

#[test]
fn a_literal_cd_moves_later_paths() {
    check(&[
        ("cd d && rm a", "D d/a"),
        ("cd d; cd ../e\necho > f", "W d/../e/f"),
        ("cd /abs && rm a /b", "D /abs/a, D /b"),
        ("cd -- d && rm a", "D d/a"),
        ("(cd d && rm a); rm b", "D d/a, D b"),
        ("x=$(cd d && rm a) && rm b", "D d/a, D b"),
        ("cd d > log && rm a", "W log, D d/a"),
        ("cd d && git commit && git rm f", "D d/f, C d"),
        ("pushd d && rm a && popd && rm b", "D d/a"),
        ("cd \"$D\" && rm a /b", "D /b"),
        ("cd ~/d && rm a", ""),
        ("cd && rm a", ""),
        ("cd - && rm a", ""),
        ("cd d || rm a /b", "D /b"),
        ("cd d | rm a", ""),
        ("cd d* && rm a", ""),
    ]);
    assert_eq!(shown(&edits("rm a; cd d && rm b; rm /c", "w")), "D w/a, D w/d/b, D /c");
}

#[test]
fn a_here_document_is_passed_over_or_is_a_patch() {
    check(&[
        ("cat > a <<EOF\nrm x\n> y\nEOF\nrm b", "W a, D b"),
        ("cat <<'EOF' > a\nit's > y\nEOF", "W a"),
        ("cat <<\"E O F\" >a\nrm x\nE O F\nrm b", "W a, D b"),
        ("cat <<-EOF > a\n\trm x\n\tEOF\nrm b", "W a, D b"),
        ("cat <<A <<B > c\nrm x\nA\nrm y\nB\nrm d", "W c, D d"),
        ("cat <<EOF && rm a\nrm x\nEOF\nrm b", "D a, D b"),
        ("cat <<EOF\nrm x", ""),
        ("cat <<EOF", ""),
        ("git commit -m \"$(cat <<'EOF'\nmv it's :) a -> b\n\n1) rm x\nEOF\n)\" && rm c", "D c, C "),
        ("apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: a\n*** Move to: b\n*** End Patch\nEOF\n", "F a, T b"),
        ("cd d && apply_patch <<EOF && rm c\n*** Delete File: a\nEOF", "D d/a, D d/c"),
        ("cat <<EOF | apply_patch\n*** Add File: a\nEOF", ""),
        ("cd \"$D\" && apply_patch <<EOF\n*** Add File: a\nEOF", ""),
        ("cat <<EOF\n*** Add File: a\nEOF", ""),
    ]);
}

#[test]
fn long_commands_are_read_in_part_and_say_so() {
    let many = (0..300).map(|n| format!("f{n} ")).collect::<String>();
    let found = edits(&format!("rm {many}"), "");
    assert_eq!((found.touches.len(), found.is_truncated), (TOUCHES_MAX, true));

    let line = "rm aaaaaaaaaaaa\n";
    let found = edits(&format!("{}rm {}", line.repeat(10), "b".repeat(shell::COMMAND_BYTES_MAX)), "");
    assert_eq!((found.touches.len(), found.is_truncated), (10, true), "the cut line is not read");

    let found = edits(&"(".repeat(60_000), "");
    assert_eq!(found, Edits::default(), "deep nesting ends");
    let found = edits(&"$( ".repeat(20_000), "");
    assert_eq!(found, Edits::default(), "deep substitutions end");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_command_fails(command in ".*", folder in "[a-z/]{0,8}") {
        edits(&command, &folder);
    }

    #[test]
    fn no_mixture_of_signs_fails(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "rm ", "mv ", "cp -t", "tee ", "sed -i", "git ", "checkout ", "-C ", "cd ", "a ", "ä", "-", "--", "=", "<<", "<<E\n", "\nE\n",
                ">", "<", "&", "|", ";", "(", ")", "((", "))", "{", "}", "[[ ", "]]", "'", "\"", "\\", "$", "$(", "${", "$'", "`", "#", "\n",
                "\t", "*", "~", "1", "apply_patch ", "*** Add File: a\n", " ",
            ]),
            0..60,
        ),
    ) {
        edits(&parts.concat(), "d");
    }

    #[test]
    fn a_quoted_name_is_found_whole(name in "[^~'\0/\n][^'\0/\n]{0,19}") {
        prop_assume!(!matches!(name.as_str(), "-" | "." | ".."));
        let found = edits(&format!("rm -- '{name}'"), "");
        prop_assert_eq!(found.touches.iter().map(|touch| touch.path.to_str()).collect::<Vec<_>>(), [Some(name.as_str())]);
    }
}
