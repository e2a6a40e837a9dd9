//! The files that shell commands change.

use std::path::Path;

use proptest::prelude::*;

use super::super::shell;
use super::super::touches::{COMMAND_BYTES_MAX, Edits, TOUCHES_MAX};
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
        ("echo x > a.txt", "a.txt"),
        ("echo x >> a.txt", "a.txt"),
        ("echo x >a.txt", "a.txt"),
        ("echo x >| a.txt", "a.txt"),
        ("> a.txt", "a.txt"),
        (">a echo x", "a"),
        ("make 2> err.log", "err.log"),
        ("make 2>err.log 1>>out.log", "err.log, out.log"),
        ("make &> all.log", "all.log"),
        ("make &>>all.log", "all.log"),
        ("make >& all.log", "all.log"),
        ("make > out 2>&1", "out"),
        ("make 2>&1 >out", "out"),
        ("make >&2", ""),
        ("make 2>&-", ""),
        ("make 2>/dev/null >/dev/stdout", ""),
        ("make > /dev/stderr < /dev/tty", ""),
        ("echo 2 > n", "n"),
        ("echo a->b", "b"),
        ("git push origin v<major>.<minor>", ""),
        ("cat < in", ""),
        ("cat < in > out", "out"),
        ("cat <<< '> x' > out", "out"),
        ("cat <<< x\necho > out", "out"),
        ("exec 3<&0 3> f", "f"),
        ("echo x > 'a b.txt'", "a b.txt"),
        ("echo x > \"a b.txt\"", "a b.txt"),
        ("echo x > a\\ b.txt", "a b.txt"),
        ("echo x > a\"b\"'c'd", "abcd"),
        ("echo x > \"a\\\"b\\c\"", "a\"b\\c"),
        ("echo x > '*.txt'", "*.txt"),
        ("echo x > *.txt", "glob *.txt"),
        ("echo x > ./d//../a", "./d//../a"),
        ("echo x > /abs/a", "/abs/a"),
        ("echo x \\\n  > a", "a"),
        ("echo x > a # > b", "a"),
        ("echo x#> a", "a"),
    ]);
}

#[test]
fn signs_that_are_no_redirection_write_nothing() {
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
        ("[[ a > b ]] && echo y > f", "f"),
        ("((a > b)) && echo y > f", "f"),
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
        ("find . -name '*.o' -delete", ""),
        ("ls | xargs rm", ""),
    ]);
}

#[test]
fn file_commands_change_their_operands() {
    check(&[
        ("ls | tee a.txt", "a.txt"),
        ("ls | tee -a a.txt b.txt > /dev/null", "a.txt, b.txt"),
        ("rm a b", "a, b"),
        ("rm -rf d/", "d/"),
        ("rm -- -f", "-f"),
        ("rm -f", ""),
        ("rm a 2>/dev/null", "a"),
        ("rm a\\\nb", "ab"),
        ("rm \"a*.rs\"", "a*.rs"),
        ("rm *.rs", "glob *.rs"),
        ("rm src/{a,b}.rs", "glob src/{a,b}.rs"),
        ("rm a?.[ch]", "glob a?.[ch]"),
        ("rm 'a[1].rs' \"$X\" b", "a[1].rs, b"),
        ("mv a b", "a, b or b/a"),
        ("mv a d/", "a, d/a"),
        ("mv a .", "a, ./a"),
        ("mv x/a ..", "x/a, ../a"),
        ("mv -f a x/b d", "a, x/b, d/a, d/b"),
        ("mv -t d a b", "a, b, d/a, d/b"),
        ("mv -td a", "a, d/a"),
        ("mv --target-directory=d a", "a, d/a"),
        ("mv --target-directory d a", "a, d/a"),
        ("mv -S .bak a d/", "a, d/a"),
        ("mv *.rs d", "glob *.rs, glob d/*.rs"),
        ("mv a \"$D\"", "a"),
        ("mv \"$A\" b", "b"),
        ("mv a", ""),
        ("cp a b", "b or b/a"),
        ("cp -p a ../b/", "../b/a"),
        ("cp -r src/. dst", "dst or dst/."),
        ("cp -r src dst", "dst or dst/src"),
        ("cp -a x/src/ dst/", "dst/src"),
        ("cp a b c d", "d/a, d/b, d/c"),
        ("cp \"$A\" b/", ""),
        ("touch a", "a"),
        ("truncate -s 0 a", "a"),
        ("dd if=/dev/zero of=a bs=1", "a"),
        ("ln -sf x a", "a or a/x"),
        ("install -m 644 x d/", "d/x"),
        ("perl -pi -e s/a/b/ f", "f"),
        ("patch a < p", "a"),
        ("/bin/rm a", "a"),
        ("\\rm a", "a"),
    ]);
}

#[test]
fn only_sed_in_place_writes_files() {
    check(&[
        ("sed 's/a/b/' f", ""),
        ("sed -n '1,5p' f", ""),
        ("sed -i 's/a/b/' f", "f"),
        ("sed -i s/base/x/ a.txt", "a.txt"),
        ("sed -i.bak 's/a/b/' f g", "f, g"),
        ("sed -i.old 's/a/b/' f", "f"),
        ("sed -i.ext 's/a/b/' f", "f"),
        ("sed -i '' 's/a/b/' f", "f"),
        ("sed -i -e 's/a/b/' -e 's/c/d/' f", "f"),
        ("sed -i -es/a/b/ f", "f"),
        ("sed -ni -f script f", "f"),
        ("sed -Ei 's/(a)/b/' f", "f"),
        ("sed -E -i 's/(a)/b/' src/*.rs", "glob src/*.rs"),
        ("sed --in-place=.bak --expression='s/a/b/' f", "f"),
        ("sed --in-place --expression s/a/b/ f", "f"),
        ("sed 's/a/b/' f -i", "f"),
        ("sed -i \"s/$A/$B/\" f", "f"),
        ("sed -i s/[a-z]*/x/ f", "f"),
        ("sed -i 's/a/b/'", ""),
        ("sed -i", ""),
        ("sed 's/a/b/' f > g", "g"),
    ]);
}

#[test]
fn git_changes_the_work_tree() {
    check(&[
        ("git mv a b", "a, b or b/a"),
        ("git mv -k a b d/", "a, b, d/a, d/b"),
        ("git rm a b", "a, b"),
        ("git rm -r --cached d", ""),
        ("git rm -n d", ""),
        ("git rm src/*.c", "glob src/*.c"),
        ("git checkout main", "Worktree or main"),
        ("git checkout feature", "Worktree or feature"),
        ("git checkout -b new.name", ""),
        ("git checkout --orphan new.name", ""),
        ("git checkout -", "Worktree"),
        ("git checkout", ""),
        ("git checkout a.rs", "Worktree or a.rs"),
        ("git checkout .", "Worktree or ."),
        ("git checkout -f src/", "Worktree or src/"),
        ("git checkout -- a b", "a, b"),
        ("git checkout HEAD~1 -- a", "a"),
        ("git checkout main a b", "a, b"),
        ("git checkout --", ""),
        ("git restore a b", "a, b"),
        ("git restore -s HEAD~1 a", "a"),
        ("git restore --source=HEAD~1 --staged --worktree a", "a"),
        ("git restore --source HEAD~1 a", "a"),
        ("git restore '*.rs' x", "glob *.rs, x"),
        ("git rm -f 'd/*'", "glob d/*"),
        ("git checkout -- :/", "/"),
        ("git restore ':(top)a'", "/"),
        ("git restore --staged a", ""),
        ("git restore -S a", ""),
        ("git commit -m 'x > y; rm z'", "commit"),
        ("git add -A && git commit -qam x", "commit"),
        ("git -C sub commit", "commit in sub"),
        ("git -c a.b=c rm f", "f"),
        ("git --git-dir=x commit", ""),
        ("git --work-tree=x rm f", ""),
        ("git status > s", "s"),
        ("git stash", "Worktree"),
        ("git stash -u", "Worktree"),
        ("git stash push -m x", "Worktree"),
        ("git stash push a b", "a, b"),
        ("git stash list; git stash show", ""),
        ("git stash pop", "Repository"),
        ("git stash apply; git stash drop; git stash clear", "Repository, Repository, Repository"),
        ("git reset --hard", "Worktree"),
        ("git reset HEAD~1; git reset --soft a", ""),
        ("git switch main", "Worktree"),
        ("git switch -c x; git checkout -b x; git checkout -B x", ""),
        ("git clean -fd", "Worktree"),
        ("git clean -nd", ""),
        ("git clean -fd src", "src"),
        ("git pull; git merge x; git rebase x", "Worktree, Worktree, Worktree"),
        ("git cherry-pick x; git revert x; git am < p; git apply p", "Worktree, Worktree, Worktree, Worktree"),
        ("git apply --check p", ""),
        ("cd d && git reset --hard", "Worktree in d"),
        ("git push; git fetch; git log; git diff; git branch -d x", ""),
        ("git", ""),
    ]);
}

#[test]
fn commands_are_found_in_lists_groups_and_after_prefixes() {
    check(&[
        ("ls; rm a && mv b c/ || cp d e/ | tee f & rm g\nrm h", "a, b, c/b, e/d, f, g, h"),
        ("(rm a; (rm b)); { rm c; rm d; } > e", "a, b, c, d, e"),
        ("if [ -f a ]; then rm a; else rm b; fi", "a, b"),
        ("for f in x; do rm a; done > out", "a, out"),
        ("while ! rm a; do rm b; done", "a, b"),
        ("case $x in y) rm a ;; *) rm b;; esac", "a, b"),
        ("A=b C=\"$d\" rm a", "a"),
        ("A=$(cat b) rm a", "a"),
        ("A=b", ""),
        ("sudo rm a", "a"),
        ("timeout 5 rm a", "a"),
        ("timeout -s KILL 1.5m rm a", "a"),
        ("nice -n 5 nohup rm a", "a"),
        ("bash -c 'rm a; cd d && rm b'; rm c", "a, d/b, c"),
        ("sh -ec \"rm a\"", "a"),
        ("eval 'rm a' '&& rm b'", "a, b"),
        ("bash script.sh", ""),
        ("((rm a); rm b)", "a, b"),
        ("sudo -n env -i A=b command rm a", "a"),
        ("time -p rm a", "a"),
        ("command -v rm mv", ""),
        ("\"$RM\" a; $RM b", ""),
        ("echo rm a", ""),
        ("x=$(rm a)", "a"),
        ("echo \"$(rm a; echo \"$(rm b)\")\" > c", "a, b, c"),
        ("ls > >(tee a)", "a"),
        ("echo $'it\\'s > x' > a", "a"),
        ("echo ${a:-b} > c", "c"),
        ("rm a\r\nrm b\r\n", "a, b"),
    ]);
}

#[test]
fn a_literal_cd_moves_later_paths() {
    check(&[
        ("cd d && rm a", "d/a"),
        ("cd d; cd ../e\necho > f", "e/f"),
        ("cd ../e && cd ../../x && rm a", "../../x/a"),
        ("git -C sub rm a && rm b", "sub/a, b"),
        ("cd /abs && rm a /b", "/abs/a, /b"),
        ("cd -- d && rm a", "d/a"),
        ("(cd d && rm a); rm b", "d/a, b"),
        ("x=$(cd d && rm a) && rm b", "d/a, b"),
        ("cd d > log && rm a", "log, d/a"),
        ("cd d && git commit && git rm f", "d/f, commit in d"),
        ("pushd d && rm a && popd && rm b", "d/a"),
        ("cd \"$D\" && rm a /b", "/b"),
        ("cd ~/d && rm a", ""),
        ("cd && rm a", ""),
        ("cd - && rm a", ""),
        ("cd d || rm a /b", "/b"),
        ("cd d | rm a", ""),
        ("cd d* && rm a", ""),
    ]);
    assert_eq!(shown(&edits("rm a; cd d && rm b; rm /c", "w")), "w/a, w/d/b, /c");
}

#[test]
fn a_here_document_is_passed_over() {
    check(&[
        ("cat > a <<EOF\nrm x\n> y\nEOF\nrm b", "a, b"),
        ("cat <<'EOF' > a\nit's > y\nEOF", "a"),
        ("cat <<\"E O F\" >a\nrm x\nE O F\nrm b", "a, b"),
        ("cat <<-EOF > a\n\trm x\n\tEOF\nrm b", "a, b"),
        ("cat <<A <<B > c\nrm x\nA\nrm y\nB\nrm d", "c, d"),
        ("cat <<EOF && rm a\nrm x\nEOF\nrm b", "a, b"),
        ("cat <<EOF\nrm x", ""),
        ("cat <<EOF", ""),
        ("git commit -m \"$(cat <<'EOF'\nmv it's :) a -> b\n\n1) rm x\nEOF\n)\" && rm c", "c, commit"),
        ("apply_patch <<EOF && rm c\n*** Delete File: a\nEOF", "a, c"),
        ("bash <<'EOF'\nrm a\nEOF\nrm b", "a, b"),
        ("cat <<EOF\n$(rm a)\nEOF", "a"),
        ("cat <<'EOF'\n$(rm a)\nEOF", ""),
    ]);
}

#[test]
fn long_commands_are_read_in_part() {
    let many = (0..300).map(|n| format!("f{n} ")).collect::<String>();
    let found = edits(&format!("rm {many}"), "");
    assert_eq!(found.touches.len(), TOUCHES_MAX);

    let line = "rm aaaaaaaaaaaa\n";
    let found = edits(&format!("{}rm {}", line.repeat(10), "b".repeat(COMMAND_BYTES_MAX)), "");
    assert_eq!(found.touches.len(), 10, "the cut line is not read");

    let cut = Edits { is_cut: true, ..Edits::default() };
    for deep in ["(", "( ", "$( "] {
        assert_eq!(edits(&deep.repeat(20_000), ""), cut, "deep nesting ends: {deep}");
    }
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

#[test]
fn options_that_only_show_or_have_a_value_change_nothing() {
    check(&[
        ("bash -c ''", ""),
        ("sh -c", ""),
        ("rm a; bash -lc; rm b", "a, b"),
        ("bash -euo pipefail -c 'rm a'", "a"),
        ("bash -o pipefail -c 'rm a'", "a"),
        ("bash -ic 'rm a'", "a"),
        ("perl -MList::Util=sum -lne print a", ""),
        ("perl -Ilib -ne print a", ""),
        ("perl -Mstrict -Mwarnings -ne print a", ""),
        ("ruby -rdigest -e x a", ""),
        ("perl -Ilib -pi -e s/a/b/ f", "f"),
        ("touch -r a b", "b"),
        ("touch --reference a b", "b"),
        ("touch -d 'an hour ago' b", "b"),
        ("patch --dry-run -p1 < x", ""),
        ("patch --help", ""),
        ("git apply --numstat x", ""),
        ("git apply --summary x", ""),
        ("git mv -n a b", ""),
        ("git stash --help", ""),
        ("git rebase -h", ""),
        ("git rebase --show-current-patch", ""),
        ("git merge --quit", ""),
        ("git clean -fdX", ""),
        ("git clean -fd -e a", "Worktree"),
        ("git stash -- a", "a"),
        ("git switch --orphan x", "Worktree"),
        ("git commit -m x -- a", "a"),
        ("git commit -m 'a b' -o c", "c"),
        ("cat > a <<EOF\n\\$(rm b) $(rm c)\nEOF", "c, a"),
    ]);
}
