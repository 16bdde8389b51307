(* Definitions and lemmas that the other files share.

   Numbers. R is any ordered field (realFieldType). The real numbers are one,
   and so are the rational numbers. Where a square root is needed, the files ask
   for a real closed field (rcfType) instead. No axiom is used.

   Laws. Z and S take finitely many values: they are finite types, and a joint
   law is a table p z s of non-negative numbers that sum to one. Every
   expectation is then a finite sum.

   Kernels. A kernel on a finite type is a symmetric function k x y whose
   quadratic form is non-negative. It does not have to be characteristic,
   bounded by one, or constant on the diagonal.

   Functions of the RKHS. A function f belongs to the RKHS of k and has squared
   norm at most b exactly if  (sum_x c x * f x)^2 <= b * (quadratic form of c)
   for all coefficients c. This is the usual criterion that b k - f f is a
   kernel, so [ball k b f] is the ball of the RKHS without any limit process.
   Lemma [ball_span] shows that the combinations sum_y c y * k x y are in it
   with their usual squared norm. *)
From mathcomp Require Import all_ssreflect all_algebra ring.
Set Implicit Arguments.
Unset Strict Implicit.
Unset Printing Implicit Defensive.
Import Order.TTheory GRing.Theory Num.Theory.
Local Open Scope ring_scope.

Section Kernels.
Variable R : realFieldType.
Implicit Types (T : finType).

(* begin definitions of kernels *)
Definition form T (k : T -> T -> R) (u v : T -> R) : R :=
  \sum_x \sum_y u x * v y * k x y.

Definition quad T (k : T -> T -> R) (u : T -> R) : R := form k u u.

Definition kernel T (k : T -> T -> R) : Prop :=
  (forall x y, k x y = k y x) /\ (forall u, 0 <= quad k u).

Definition ball T (k : T -> T -> R) (b : R) (f : T -> R) : Prop :=
  forall c : T -> R, (\sum_x c x * f x) ^+ 2 <= b * quad k c.

(* The squared MMD of two laws is the squared norm of the difference of their embeddings. *)
Definition mmd2 T (k : T -> T -> R) (P Q : T -> R) : R := quad k (fun x => P x - Q x).

Definition law T (P : T -> R) : Prop := (forall x, 0 <= P x) /\ \sum_x P x = 1.

(* The MMD of a characteristic kernel is zero for equal laws only. *)
Definition characteristic T (k : T -> T -> R) : Prop :=
  forall P Q : T -> R, law P -> law Q -> mmd2 k P Q = 0 -> forall x, P x = Q x.

Definition strictly_positive T (k : T -> T -> R) : Prop :=
  forall u : T -> R, quad k u = 0 -> forall x, u x = 0.
(* end definitions of kernels *)

Section Forms.
Variables (T : finType) (k : T -> T -> R).

Lemma eq_form (u u' v v' : T -> R) : u =1 u' -> v =1 v' -> form k u v = form k u' v'.
Proof.
by move=> eu ev; apply: eq_bigr => x _; apply: eq_bigr => y _; rewrite eu ev.
Qed.

Lemma eq_quad (u u' : T -> R) : u =1 u' -> quad k u = quad k u'.
Proof. by move=> eu; exact: eq_form. Qed.

Lemma formDl a b (u w v : T -> R) :
  form k (fun x => a * u x + b * w x) v = a * form k u v + b * form k w v.
Proof.
rewrite /form !mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite !mulr_sumr -big_split; apply: eq_bigr => y _ /=; ring.
Qed.

Lemma formDr a b (u v w : T -> R) :
  form k u (fun x => a * v x + b * w x) = a * form k u v + b * form k u w.
Proof.
rewrite /form !mulr_sumr -big_split; apply: eq_bigr => x _ /=.
by rewrite !mulr_sumr -big_split; apply: eq_bigr => y _ /=; ring.
Qed.

Lemma form_suml (I : finType) (c : I -> R) (u : I -> T -> R) v :
  form k (fun x => \sum_i c i * u i x) v = \sum_i c i * form k (u i) v.
Proof.
rewrite /form; under [RHS]eq_bigr do rewrite mulr_sumr.
rewrite [RHS]exchange_big; apply: eq_bigr => x _ /=.
under [RHS]eq_bigr do rewrite mulr_sumr.
rewrite [RHS]exchange_big; apply: eq_bigr => y _ /=.
by rewrite !mulr_suml; apply: eq_bigr => i _; ring.
Qed.

Lemma form_sumr (I : finType) (c : I -> R) (u : T -> R) (v : I -> T -> R) :
  form k u (fun x => \sum_i c i * v i x) = \sum_i c i * form k u (v i).
Proof.
rewrite /form; under [RHS]eq_bigr do rewrite mulr_sumr.
rewrite [RHS]exchange_big; apply: eq_bigr => x _ /=.
under [RHS]eq_bigr do rewrite mulr_sumr.
rewrite [RHS]exchange_big; apply: eq_bigr => y _ /=.
rewrite mulr_sumr mulr_suml; apply: eq_bigr => i _; ring.
Qed.

Lemma quadD a b (u v : T -> R) : (forall x y, k x y = k y x) ->
  quad k (fun x => a * u x + b * v x)
  = a ^+ 2 * quad k u + 2%:R * a * b * form k u v + b ^+ 2 * quad k v.
Proof.
move=> sk; rewrite /quad formDl !formDr.
have -> : form k v u = form k u v.
  rewrite /form exchange_big; apply: eq_bigr => x _; apply: eq_bigr => y _.
  by rewrite sk; ring.
ring.
Qed.

Lemma quadZ a (u : T -> R) : quad k (fun x => a * u x) = a ^+ 2 * quad k u.
Proof.
rewrite /quad /form mulr_sumr; apply: eq_bigr => x _; rewrite mulr_sumr.
by apply: eq_bigr => y _; ring.
Qed.

Definition point (a x : T) : R := (x == a)%:R.

Lemma sum_point a (f : T -> R) : \sum_x point a x * f x = f a.
Proof.
rewrite (bigD1 a) //= big1 ?addr0 /point ?eqxx ?mul1r // => x /negbTE ->.
by rewrite mul0r.
Qed.

Lemma form_point a v : form k (point a) v = \sum_y v y * k a y.
Proof.
rewrite /form -(sum_point a (fun x => \sum_y v y * k x y)).
apply: eq_bigr => x _; rewrite mulr_sumr; apply: eq_bigr => y _; ring.
Qed.

Lemma form_points a b : form k (point a) (point b) = k a b.
Proof. by rewrite form_point sum_point. Qed.

End Forms.

Lemma form_sym T (k : T -> T -> R) u v :
  (forall x y, k x y = k y x) -> form k u v = form k v u.
Proof.
move=> sk; rewrite /form exchange_big; apply: eq_bigr => x _; apply: eq_bigr => y _.
by rewrite sk; ring.
Qed.

(* The Cauchy-Schwarz inequality for the semi-inner product of a kernel. *)
Lemma form_cauchy_schwarz T (k : T -> T -> R) u v :
  kernel k -> form k u v ^+ 2 <= quad k u * quad k v.
Proof.
move=> [sk pk]; set a := quad k u; set b := quad k v; set c := form k u v.
have b0 : 0 <= b by exact: pk.
have [bp|/eqP b_eq0] : 0 < b \/ b == 0 by move: b0; rewrite le_eqVlt eq_sym => /orP[->|]; [right|left].
  have := pk (fun x => b * u x + (- c) * v x).
  rewrite quadD // -/a -/b -/c.
  have -> : b ^+ 2 * a + 2%:R * b * - c * c + (- c) ^+ 2 * b = b * (a * b - c ^+ 2) by ring.
  by rewrite pmulr_rge0 // subr_ge0.
rewrite b_eq0 mulr0.
have [->|c0] := eqVneq c 0; first by rewrite expr0n.
have c2 : 2%:R * c != 0 by rewrite mulf_neq0 // pnatr_eq0.
have := pk (fun x => 1 * u x + (- (a + 1) / (2%:R * c)) * v x).
rewrite quadD // -/a -/b -/c b_eq0 mulr0 addr0.
have -> : 1 ^+ 2 * a + 2%:R * 1 * (- (a + 1) / (2%:R * c)) * c = -1.
  by field.
by rewrite oppr_ge0 ler10.
Qed.

Lemma dot_sq T (f w : T -> R) :
  (\sum_x f x * w x) ^+ 2 <= (\sum_x f x ^+ 2) * (\sum_x w x ^+ 2).
Proof.
pose d (x y : T) : R := (x == y)%:R.
have ed u v : form d u v = \sum_x u x * v x.
  rewrite /form; apply: eq_bigr => x _; rewrite (bigD1 x) //= big1 ?addr0 /d ?eqxx ?mulr1 //.
  by move=> y; rewrite eq_sym => /negbTE ->; rewrite mulr0.
have kd : kernel d.
  split=> [x y|u]; first by rewrite /d eq_sym.
  by rewrite /quad ed; apply: sumr_ge0 => x _; rewrite -expr2 sqr_ge0.
have e2 u : quad d u = \sum_x u x ^+ 2.
  by rewrite /quad ed; apply: eq_bigr => x _; rewrite expr2.
by have := form_cauchy_schwarz f w kd; rewrite !e2 ed.
Qed.

(* Functions of the span belong to the RKHS with their usual norm. *)
Lemma ball_span T (k : T -> T -> R) c :
  kernel k -> ball k (quad k c) (fun x => \sum_y c y * k x y).
Proof.
move=> kk u; have -> : \sum_x u x * (\sum_y c y * k x y) = form k u c.
  by apply: eq_bigr => x _; rewrite mulr_sumr; apply: eq_bigr => y _; ring.
by rewrite [_ * quad k u]mulrC; exact: form_cauchy_schwarz.
Qed.

Lemma ball_point T (k : T -> T -> R) a : kernel k -> ball k (k a a) (fun x => k x a).
Proof.
move=> kk; have := ball_span (point a) kk; rewrite /quad form_points => h u.
have := h u; under eq_bigr do rewrite sum_point; done.
Qed.

Lemma ball_points T (k : T -> T -> R) a b : kernel k ->
  ball k (k a a - 2%:R * k a b + k b b) (fun x => k x a - k x b).
Proof.
move=> kk u; have [sk _] := kk.
have := ball_span (fun x => 1 * point a x + (-1) * point b x) kk u.
rewrite quadD // /quad !form_points.
have -> : 1 ^+ 2 * k a a + 2%:R * 1 * -1 * k a b + (-1) ^+ 2 * k b b
          = k a a - 2%:R * k a b + k b b by ring.
move=> h; rewrite (eq_bigr (fun x => u x * \sum_y (1 * point a y + -1 * point b y) * k x y)) //.
move=> x _; congr (_ * _).
rewrite (eq_bigr (fun y => point a y * k x y - point b y * k x y)); last by move=> y _; ring.
by rewrite sumrB !sum_point.
Qed.

Lemma ball_ge0 T (k : T -> T -> R) b f x : kernel k -> ball k b f -> f x != 0 -> 0 <= b.
Proof.
move=> [_ pk] /(_ (point x)); rewrite sum_point => h f0.
case: (leP 0 b) => // /ltW b0.
have : 0 < f x ^+ 2 by rewrite lt_neqAle sqr_ge0 eq_sym expf_neq0.
by rewrite ltNge (le_trans h) // mulr_le0_ge0.
Qed.

(* Eigenvectors e_i of a form, with eigenvalues lam_i: the squared norm of a combination,
   and the squared norm that remains after a projection. *)
Lemma quad_combination T (k : T -> T -> R) m (e : 'I_m -> T -> R) (lam c : 'I_m -> R) :
  (forall i j, form k (e i) (e j) = lam j * (i == j)%:R) ->
  quad k (fun x => \sum_i c i * e i x) = \sum_i lam i * c i ^+ 2.
Proof.
move=> ee; rewrite /quad form_suml; apply: eq_bigr => i _; rewrite form_sumr.
rewrite (bigD1 i) //= ee eqxx mulr1 big1 ?addr0 => [|j]; first by ring.
by rewrite eq_sym ee => /negbTE ->; rewrite !mulr0.
Qed.

Lemma quad_residual T (k : T -> T -> R) m (u : T -> R) (e : 'I_m -> T -> R) (lam c : 'I_m -> R) :
  (forall x y, k x y = k y x) ->
  (forall i, form k u (e i) = lam i * c i) ->
  (forall i j, form k (e i) (e j) = lam j * (i == j)%:R) ->
  quad k (fun x => u x - \sum_i c i * e i x) = quad k u - \sum_i lam i * c i ^+ 2.
Proof.
move=> sk ue ee; pose w x := \sum_i c i * e i x.
have -> : quad k (fun x => u x - \sum_i c i * e i x) = quad k (fun x => 1 * u x + -1 * w x).
  by apply: eq_quad => x; rewrite /w; ring.
rewrite quadD // (quad_combination c ee).
have -> : form k u w = \sum_i lam i * c i ^+ 2.
  by rewrite /w form_sumr; apply: eq_bigr => i _; rewrite ue; ring.
by ring.
Qed.

(* Every kernel on a finite type is a finite sum of squares (as by Cholesky, without roots). *)
Definition squares T (r : nat) (d : 'I_r -> R) (v : 'I_r -> T -> R) (x y : T) : R :=
  \sum_j d j * (v j x * v j y).

Lemma form_squares T r (d : 'I_r -> R) (v : 'I_r -> T -> R) u w :
  form (squares d v) u w = \sum_j d j * ((\sum_x u x * v j x) * (\sum_x w x * v j x)).
Proof.
transitivity (\sum_j \sum_x \sum_y d j * ((u x * v j x) * (w y * v j y))).
  rewrite /form /squares exchange_big /=.
  rewrite [LHS]exchange_big /= [RHS]exchange_big /=; apply: eq_bigr => x _.
  rewrite [RHS]exchange_big /=; apply: eq_bigr => y _.
  by rewrite mulr_sumr; apply: eq_bigr => j _; ring.
apply: eq_bigr => j _; rewrite big_distrlr /= mulr_sumr; apply: eq_bigr => x _.
by rewrite mulr_sumr.
Qed.

Lemma eq_kernel_form T (k k' : T -> T -> R) u v :
  (forall x y, k x y = k' x y) -> form k u v = form k' u v.
Proof.
by move=> e; apply: eq_bigr => x _; apply: eq_bigr => y _; rewrite e.
Qed.

Theorem kernel_squares T (k : T -> T -> R) : kernel k ->
  exists r (d : 'I_r -> R) (v : 'I_r -> T -> R),
    (forall j, 0 <= d j) /\ forall x y, k x y = squares d v x y.
Proof.
have [n] := ubnP #|[pred x | k x x != 0]|; elim: n => // n IH in k *; rewrite ltnS => card_n kk.
have [sk pk] := kk.
have cs x y : k x y ^+ 2 <= k x x * k y y.
  by have := form_cauchy_schwarz (point x) (point y) kk; rewrite /quad !form_points.
have [a ka|k0] := pickP [pred x | k x x != 0]; last first.
  exists 0%N, (fun=> 0), (fun _ _ => 0); split=> // x y; rewrite /squares big_ord0.
  apply/eqP; rewrite -sqrf_eq0 eq_le sqr_ge0 andbT; apply: le_trans (cs x y) _.
  by have /negbFE/eqP -> := k0 x; rewrite mul0r.
have ka0 : k a a != 0 by exact: ka.
pose k' x y := k x y - (k a a)^-1 * (k x a * k y a).
have eform u w : form k' u w = form k u w - (k a a)^-1 * (form k u (point a) * form k w (point a)).
  rewrite ![form _ _ (point a)]form_sym // !form_point /form -/(form _ _ _).
  rewrite big_distrlr /= mulr_sumr -sumrB; apply: eq_bigr => x _.
  rewrite mulr_sumr -sumrB; apply: eq_bigr => y _; rewrite /k' (sk x a) (sk y a); ring.
have kap : 0 < k a a by rewrite lt_neqAle eq_sym ka0 -(form_points k a a); exact: pk.
have kk' : kernel k'.
  split=> [x y|u]; first by rewrite /k' sk; ring.
  rewrite /quad eform -expr2 subr_ge0 ler_pdivr_mull //.
  apply: le_trans (form_cauchy_schwarz u (point a) kk) _.
  by rewrite {2}/quad form_points mulrC.
have ka'0 : k' a a = 0 by rewrite /k'; field.
have card_lt : (#|[pred x | k' x x != 0%R]| < n)%N.
  apply: leq_trans card_n; apply: proper_card; apply/properP; split.
    apply/subsetP => x; rewrite !inE; apply: contra => /eqP kx.
    rewrite /k' kx; suff -> : k x a = 0 by rewrite mul0r mulr0 subr0 eqxx.
    apply/eqP; rewrite -sqrf_eq0 eq_le sqr_ge0 andbT.
    by apply: le_trans (cs x a) _; rewrite kx mul0r.
  by exists a; rewrite !inE ?ka'0 ?eqxx.
have [r [d [v [d0 e]]]] := IH k' card_lt kk'.
exists r.+1, (fun j => if unlift ord0 j is Some i then d i else (k a a)^-1).
exists (fun j => if unlift ord0 j is Some i then v i else (fun x => k x a)); split.
  by move=> j; case: unliftP => [i _|_]; rewrite ?invr_ge0 // ltW.
move=> x y; rewrite /squares big_ord_recl unlift_none.
rewrite (eq_bigr (fun j => d j * (v j x * v j y))); last by move=> j _; rewrite liftK.
by rewrite -/(squares d v x y) -e /k'; ring.
Qed.

End Kernels.

Section Laws.
Variables (R : realFieldType) (Z S : finType).

(* begin definitions of laws *)
Definition joint_law (p : Z -> S -> R) : Prop :=
  (forall z s, 0 <= p z s) /\ \sum_z \sum_s p z s = 1.

Definition marginal_z (p : Z -> S -> R) (z : Z) : R := \sum_s p z s.
Definition marginal_s (p : Z -> S -> R) (s : S) : R := \sum_z p z s.

(* P(Z = z | S = s); zero, and never used, where P(S = s) = 0. *)
Definition conditional (p : Z -> S -> R) (s : S) (z : Z) : R := p z s / marginal_s p s.

(* Delta(s) = embedding of the conditional law less that of the marginal law, by its weights. *)
Definition deviation (p : Z -> S -> R) (s : S) (z : Z) : R :=
  conditional p s z - marginal_z p z.

Definition product_kernel (k : Z -> Z -> R) (l : S -> S -> R) (a b : Z * S) : R :=
  k a.1 b.1 * l a.2 b.2.

Definition joint (p : Z -> S -> R) (a : Z * S) : R := p a.1 a.2.
Definition product (p : Z -> S -> R) (a : Z * S) : R :=
  marginal_z p a.1 * marginal_s p a.2.

(* Definition 2.1: the squared MMD between the joint law and the product of the marginals. *)
Definition hsic (k : Z -> Z -> R) (l : S -> S -> R) (p : Z -> S -> R) : R :=
  mmd2 (product_kernel k l) (joint p) (product p).

(* The conditional MMD integral, E_S[MMD^2(P_{Z|S}, P_Z)]. *)
Definition expected_mmd2 (k : Z -> Z -> R) (p : Z -> S -> R) : R :=
  \sum_s marginal_s p s * mmd2 k (conditional p s) (marginal_z p).

Definition independent (p : Z -> S -> R) : Prop :=
  forall z s, p z s = marginal_z p z * marginal_s p s.

(* m_f(s) = E[f(Z) | S = s] - E f(Z) *)
Definition head_gap (p : Z -> S -> R) (f : Z -> R) (s : S) : R :=
  \sum_z f z * deviation p s z.

(* A supremum may be missing in an ordered field, so a supremum is a relation:
   v is the least non-negative upper bound of the numbers in A. *)
Definition least_bound (A : R -> Prop) (v : R) : Prop :=
  [/\ 0 <= v, forall a, A a -> a <= v
    & forall u, 0 <= u -> (forall a, A a -> a <= u) -> v <= u].

Definition mean (T : finType) (P f : T -> R) : R := \sum_x P x * f x.

(* v is the integral probability metric of the class F between P and Q. *)
Definition ipm (T : finType) (F : (T -> R) -> Prop) (P Q : T -> R) (v : R) : Prop :=
  least_bound (fun a => exists2 f, F f & a = `|mean P f - mean Q f|) v.

(* end definitions of laws *)

Lemma sum_pair (f : Z * S -> R) : \sum_a f a = \sum_z \sum_s f (z, s).
Proof. by rewrite pair_big /=; apply: eq_bigr => -[]. Qed.

Variable p : Z -> S -> R.
Hypothesis p_law : joint_law p.

Lemma marginal_s_ge0 s : 0 <= marginal_s p s.
Proof. by apply: sumr_ge0 => z _; case: p_law. Qed.

Lemma marginal_z_ge0 z : 0 <= marginal_z p z.
Proof. by apply: sumr_ge0 => s _; case: p_law. Qed.

Lemma marginal_s_sum : \sum_s marginal_s p s = 1.
Proof. by rewrite /marginal_s exchange_big; case: p_law. Qed.

Lemma marginal_s_law : law (marginal_s p).
Proof. by split; [exact: marginal_s_ge0 | exact: marginal_s_sum]. Qed.

Lemma marginal_z_law : law (marginal_z p).
Proof. by split; [exact: marginal_z_ge0 | case: p_law]. Qed.

Lemma null_column s z : marginal_s p s = 0 -> p z s = 0.
Proof.
move=> /eqP; rewrite psumr_eq0 => [/allP /(_ z)|z' _]; last by case: p_law.
by rewrite mem_index_enum => /(_ isT) /eqP.
Qed.

Lemma joint_is_law : law (joint p).
Proof. by case: p_law => p0 p1; split=> [a|]; [exact: p0 | rewrite sum_pair]. Qed.

Lemma product_is_law : law (product p).
Proof.
split=> [a|]; first by rewrite mulr_ge0 ?marginal_z_ge0 ?marginal_s_ge0.
rewrite sum_pair /product /=; under eq_bigr do rewrite -mulr_sumr marginal_s_sum mulr1.
by case: p_law.
Qed.

Lemma joint_conditional z s : p z s = marginal_s p s * conditional p s z.
Proof.
rewrite /conditional; have [s0|s0] := eqVneq (marginal_s p s) 0.
  by rewrite s0 mul0r null_column.
by rewrite mulrC divfK.
Qed.

Lemma conditional_law s : marginal_s p s != 0 -> law (conditional p s).
Proof.
move=> s0; split=> [z|]; last by rewrite -mulr_suml divff.
by rewrite /conditional divr_ge0 ?marginal_s_ge0 //; case: p_law.
Qed.

Lemma joint_minus_product z s :
  p z s - marginal_z p z * marginal_s p s = marginal_s p s * deviation p s z.
Proof. by rewrite joint_conditional /deviation; ring. Qed.

Lemma sum_marginal (g : S -> Z -> R) :
  \sum_s marginal_s p s * (\sum_z conditional p s z * g s z) = \sum_s \sum_z p z s * g s z.
Proof.
apply: eq_bigr => s _; rewrite mulr_sumr; apply: eq_bigr => z _.
by rewrite [in RHS]joint_conditional; ring.
Qed.

(* The disintegration behind Theorem 3.2: the joint and the product law differ by the
   conditional contrasts, averaged over S. *)
Lemma mean_contrast (f : Z * S -> R) :
  mean (joint p) f - mean (product p) f
  = \sum_s marginal_s p s * \sum_z deviation p s z * f (z, s).
Proof.
rewrite /mean -sumrB sum_pair.
rewrite exchange_big; apply: eq_bigr => s _; rewrite [RHS]mulr_sumr; apply: eq_bigr => z _ /=.
by rewrite /joint /product /= -mulrBl joint_minus_product; ring.
Qed.

Lemma mean_deviation z : \sum_s marginal_s p s * deviation p s z = 0.
Proof.
under eq_bigr do rewrite -joint_minus_product.
by rewrite sumrB -mulr_sumr marginal_s_sum mulr1 subrr.
Qed.

Lemma head_gapC f s : head_gap p f s = \sum_z deviation p s z * f z.
Proof. by apply: eq_bigr => z _; rewrite mulrC. Qed.

Variables (k : Z -> Z -> R) (l : S -> S -> R).

(* The decomposition of Proposition 4.1; every other file starts from it. *)
Lemma hsic_decomposition :
  hsic k l p = \sum_s \sum_t marginal_s p s * marginal_s p t
                 * (form k (deviation p s) (deviation p t) * l s t).
Proof.
rewrite /hsic /mmd2 /quad /form /joint /product sum_pair exchange_big; apply: eq_bigr => s _ /=.
under eq_bigr => z _ do rewrite sum_pair exchange_big /=.
rewrite exchange_big; apply: eq_bigr => t _ /=.
rewrite [_ * l s t]mulr_suml [RHS]mulr_sumr; apply: eq_bigr => z _.
rewrite [_ * l s t]mulr_suml [RHS]mulr_sumr; apply: eq_bigr => z' _.
by rewrite !joint_minus_product /product_kernel /=; ring.
Qed.

(* HSIC as a sum over the directions of k. *)
Lemma hsic_squares r (d : 'I_r -> R) (v : 'I_r -> Z -> R) :
  (forall x y, k x y = squares d v x y) ->
  hsic k l p = \sum_j d j * quad l (fun s => marginal_s p s * head_gap p (v j) s).
Proof.
move=> ek; rewrite hsic_decomposition.
pose w j s := marginal_s p s * head_gap p (v j) s.
have e s t : marginal_s p s * marginal_s p t * (form k (deviation p s) (deviation p t) * l s t)
             = \sum_j d j * (w j s * w j t * l s t).
  rewrite (eq_kernel_form _ _ ek) form_squares [_ * l s t]mulr_suml [LHS]mulr_sumr.
  by apply: eq_bigr => j _; rewrite /w !head_gapC; ring.
under eq_bigr => s _ do under eq_bigr => t _ do rewrite e.
under eq_bigr => s _ do rewrite exchange_big /=.
rewrite exchange_big; apply: eq_bigr => j _ /=.
by rewrite /quad /form mulr_sumr; apply: eq_bigr => s _; rewrite mulr_sumr.
Qed.

Lemma hsic_ge0 : kernel k -> kernel l -> 0 <= hsic k l p.
Proof.
move=> /kernel_squares[r [d [v [d0 ek]]]] [_ pl]; rewrite (hsic_squares ek).
by apply: sumr_ge0 => j _; apply: mulr_ge0.
Qed.

End Laws.

(* The running example: S is a fair coin and Z = S, both with the kernel 1[x = y]. *)
Section Coin.
Variable R : realFieldType.

Definition equal (T : finType) (x y : T) : R := (x == y)%:R.
Definition coin (z s : bool) : R := if z == s then 2%:R^-1 else 0.

Lemma form_equal (T : finType) u v : form (@equal T) u v = \sum_x u x * v x.
Proof.
rewrite /form; apply: eq_bigr => x _; rewrite (bigD1 x) //= big1 ?addr0 /equal ?eqxx ?mulr1 //.
by move=> y; rewrite eq_sym => /negbTE ->; rewrite mulr0.
Qed.

Lemma quad_equal (T : finType) u : quad (@equal T) u = \sum_x u x ^+ 2.
Proof. by rewrite /quad form_equal; apply: eq_bigr => x _; rewrite expr2. Qed.

Lemma equal_kernel (T : finType) : kernel (@equal T).
Proof.
split=> [x y|u]; first by rewrite /equal eq_sym.
by rewrite quad_equal; apply: sumr_ge0 => x _; rewrite sqr_ge0.
Qed.

Lemma equal_strict (T : finType) : strictly_positive (@equal T).
Proof.
move=> u; rewrite quad_equal => /eqP; rewrite psumr_eq0 => [/allP h x|x _]; last exact: sqr_ge0.
by have := h x (mem_index_enum x); rewrite /= sqrf_eq0 => /eqP.
Qed.

Lemma strict_characteristic (T : finType) (k : T -> T -> R) :
  strictly_positive k -> characteristic k.
Proof. by move=> sk P Q _ _ /sk h x; apply/eqP; rewrite -subr_eq0 h. Qed.

Lemma coin_law : joint_law coin.
Proof.
split=> [z s|]; first by rewrite /coin; case: ifP => _; rewrite ?invr_ge0 ?ler0n.
by rewrite !big_bool /coin /=; field.
Qed.

Lemma coin_marginal s : marginal_s coin s = 2%:R^-1.
Proof. by rewrite /marginal_s big_bool /coin; case: s => /=; ring. Qed.

Lemma coin_marginal_z z : marginal_z coin z = 2%:R^-1.
Proof. by rewrite /marginal_z big_bool /coin; case: z => /=; ring. Qed.

Lemma coin_deviation s z : deviation coin s z = (if z == s then 1 else -1) / 2%:R.
Proof.
by rewrite /deviation /conditional coin_marginal coin_marginal_z /coin; case: eqP => _; field.
Qed.

Lemma coin_hsic : hsic (@equal _) (@equal _) coin = 4%:R^-1.
Proof.
rewrite (hsic_decomposition coin_law) !big_bool !coin_marginal !form_equal !big_bool.
by rewrite !coin_deviation /equal /=; field.
Qed.

End Coin.
Arguments equal {R T}.
